// Virtual time as what `bench serve` measures: the same scheduler and engine loop on a virtual clock, constant step
// times.
#include <fmt/format.h>

#include "app/bench_target.h"
#include "app/version.h"
#include "base/virtual_loop.h"
#include "runtime/engine_target.h"
#include "sim/const_executor.h"

namespace tokenstone::app {
namespace {

constexpr std::uint32_t kVocabulary = 32000;

class SimBench final : public BenchTarget {
 public:
  SimBench(sim::ConstEngine engine, std::string name, Loop& loop, std::unique_ptr<VirtualLoop> owned)
      : loop_(std::move(owned)), engine_(std::move(engine)) {
    const sched::SchedulerConfig& config = engine_.scheduler->config();
    runtime::TargetInfo info{.kind = "sim",
                             .address = std::move(name),
                             .model = "const",
                             .server = fmt::format("tokenstone {}", kVersion),
                             .max_model_len = config.max_model_len,
                             .virtual_time = true};
    target_ = runtime::make_engine_target(std::move(info), *engine_.engine, loop, loop, nullptr);
    tokenizer_ = token::builtin_tokenizer(kVocabulary);
  }
  Loop& loop() override { return *loop_; }
  runtime::Target& target() override { return *target_; }
  PlanContext context() const override {
    return {.target = target_->info(),
            .endpoint = "in process",
            .tokenizer_name = tokenizer_->name(),
            .tokenizer = tokenizer_,
            .token_ids = true};
  }
  void set_steps(record::StepSink* steps, TimeNs origin) override {
    engine_.engine->set_step_origin(origin);
    engine_.engine->set_step_sink(steps);
  }
  std::uint32_t num_blocks() const override { return engine_.scheduler->config().num_blocks; }
  std::uint32_t block_size() const override { return engine_.scheduler->config().block_size; }

 private:
  std::unique_ptr<VirtualLoop> loop_;
  sim::ConstEngine engine_;
  token::TokenizerPtr tokenizer_;
  std::unique_ptr<runtime::Target> target_;
};

}  // namespace

Result<std::unique_ptr<BenchTarget>> connect_sim(const BenchServeOptions& options, const EngineFlags& flags) {
  TS_TRY(const engine::EngineOptions engine, flags.resolve());
  TS_TRY(sched::SchedulerConfig config, sched::preset(engine.variant));
  config.max_num_seqs = engine.max_num_seqs;
  config.max_num_batched_tokens = engine.max_num_batched_tokens;
  config.long_prefill_token_threshold = engine.long_prefill_token_threshold;
  config.block_size = engine.block_size;
  config.enable_prefix_caching = engine.enable_prefix_caching;
  config.enable_chunked_prefill = engine.enable_chunked_prefill;
  config.num_blocks = static_cast<std::uint32_t>(options.sim_kv_blocks);
  config.max_model_len = engine.max_model_len.value_or(static_cast<std::uint32_t>(options.sim_max_model_len));
  TS_TRY_STATUS(sched::validate(config));
  TS_TRY(const sim::ConstCosts costs,
         sim::const_costs_from_us(options.sim_prefill_us_per_token, options.sim_decode_us));
  auto loop = std::make_unique<VirtualLoop>();
  VirtualLoop& borrowed = *loop;
  TS_TRY(auto made, sim::make_const_engine(borrowed, config, costs, nullptr, kVocabulary));
  return std::make_unique<SimBench>(std::move(made), options.target, borrowed, std::move(loop));
}

}  // namespace tokenstone::app
