// The embedded engine as what `bench serve` measures: in this process, on a thread of its own.
#include <future>

#include <fmt/format.h>

#include "app/bench_target.h"
#include "app/version.h"
#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "platform/real_loop.h"
#include "runtime/engine_target.h"

namespace tokenstone::app {
namespace {

class EngineBench final : public BenchTarget {
 public:
  explicit EngineBench(std::unique_ptr<engine::Engine> engine)
      : engine_(std::move(engine)), loop_(platform::make_real_loop()), thread_(*engine_, nullptr) {
    runtime::TargetInfo info{.kind = "engine",
                             .address = "engine",
                             .model = engine_->served_model_name(),
                             .server = fmt::format("tokenstone {}", kVersion),
                             .max_model_len = engine_->max_model_len()};
    target_ = runtime::make_engine_target(std::move(info), thread_.engine_loop(), thread_.loop(), *loop_,
                                          &engine_->prompt_encoder());
  }

  Loop& loop() override { return *loop_; }
  runtime::Target& target() override { return *target_; }
  PlanContext context() const override {
    return {.target = target_->info(),
            .endpoint = "in process",
            .tokenizer_name = engine_->tokenizer().name(),
            .tokenizer = engine_->shared_tokenizer(),
            .token_ids = true};
  }
  void set_steps(record::StepSink* steps, TimeNs origin) override {
    std::promise<void> done;
    thread_.loop().post([&] {
      thread_.engine_loop().set_step_origin(origin);
      thread_.engine_loop().set_step_sink(steps);
      done.set_value();
    });
    done.get_future().wait();
  }
  std::uint32_t num_blocks() const override { return engine_->num_blocks(); }
  std::uint32_t block_size() const override { return engine_->block_size(); }
  std::vector<std::string> start_log() const override { return engine_->start_log(); }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Loop> loop_;  // the thread posts to it until it has ended
  engine::EngineThread thread_;
  std::unique_ptr<runtime::Target> target_;  // goes first: it withdraws from the engine's loop
};

}  // namespace

Result<std::unique_ptr<BenchTarget>> connect_engine(const BenchServeOptions& options, const EngineFlags& flags) {
  TS_TRY(engine::EngineOptions resolved, flags.resolve());
  if (!options.model.empty()) resolved.model = options.model;
  if (!options.tokenizer.empty()) resolved.tokenizer = options.tokenizer;
  if (!options.served_model_name.empty()) resolved.served_model_name = options.served_model_name;
  TS_TRY(auto engine, engine::Engine::create(resolved));
  return std::make_unique<EngineBench>(std::move(engine));
}

}  // namespace tokenstone::app
