// The CPU as Executor: weights, KV memory, thread pool and forward pass behind the seam of the engine loop.
//
// Ownership: owns all of them; borrows the clock, which must outlive it. Threads: the engine loop's thread calls; the
// pool's workers help. Times: read from the clock given by `set_clock`; without one they are zero. Failure: none.
#pragma once

#include <memory>

#include "engine/forward_pass.h"
#include "runtime/executor.h"

namespace tokenstone::engine {

struct CpuExecutorOptions {
  Precision precision = Precision::bfloat16;
  std::size_t threads = 1;
  std::uint32_t num_blocks = 0, block_size = 16;
  const kernels::Kernels* kernels = nullptr;  ///< null: the default table
};

class CpuExecutor final : public runtime::Executor {
 public:
  CpuExecutor(const ModelShape& shape, const WeightSource& source, const CpuExecutorOptions& options);

  const sched::StepResult& execute(const sched::StepPlan& plan, TimeNs start) override;
  bool is_real_time() const override { return true; }
  void set_clock(const Clock* clock) { clock_ = clock; }
  /// See ForwardPass::logits.
  std::span<const float> logits(std::size_t sampled_row) const { return forward_->logits(sampled_row); }
  std::uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  template <class T>
  void build(const ModelShape& shape, const WeightSource& source, const CpuExecutorOptions& options);

  kernels::ThreadPool pool_;
  std::unique_ptr<ForwardPass> forward_;
  const Clock* clock_ = nullptr;
  std::uint64_t weight_bytes_ = 0;
  sched::StepResult result_;
};

}  // namespace tokenstone::engine
