#include "engine/cpu_executor.h"

namespace tokenstone::engine {

CpuExecutor::CpuExecutor(const ModelShape& shape, const WeightSource& source, const CpuExecutorOptions& options)
    : pool_(options.threads) {
  if (options.precision == Precision::float32) {
    build<float>(shape, source, options);
  } else {
    build<kernels::Bf16>(shape, source, options);
  }
}

template <class T>
void CpuExecutor::build(const ModelShape& shape, const WeightSource& source, const CpuExecutorOptions& options) {
  Weights<T> weights = build_weights<T>(shape, source, pool_);
  weight_bytes_ = weights.bytes();
  forward_ = std::make_unique<TypedForwardPass<T>>(
      shape, std::move(weights), pool_, ForwardOptions{options.num_blocks, options.block_size, options.kernels});
}

const sched::StepResult& CpuExecutor::execute(const sched::StepPlan& plan, TimeNs start) {
  forward_->run(plan, clock_, result_);
  result_.duration_ns = clock_ != nullptr ? clock_->now() - start : 0;
  return result_;
}

}  // namespace tokenstone::engine
