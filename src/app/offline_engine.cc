#include "app/offline_engine.h"

#include <thread>

namespace tokenstone::app {
namespace {

/// Counts outputs; stops the loop with the last one.
class Counter final : public runtime::EngineSink {
 public:
  Counter(Loop& loop, std::size_t open, OfflineResult& result) : loop_(loop), open_(open), result_(result) {}
  void on_output(const runtime::EngineOutput& output) override {
    if (!output.finished) return;
    result_.input_tokens += static_cast<std::uint64_t>(output.timing->prompt_tokens);
    result_.output_tokens += static_cast<std::uint64_t>(output.timing->output_tokens);
    ++result_.finished;
    if (--open_ == 0) loop_.stop();
  }

 private:
  Loop& loop_;
  std::size_t open_;
  OfflineResult& result_;
};

}  // namespace

Result<std::unique_ptr<OfflineEngine>> OfflineEngine::create(const EngineFlags& flags, const std::string& model,
                                                             const std::string& tokenizer) {
  TS_TRY(engine::EngineOptions options, flags.resolve());
  if (!model.empty()) options.model = model;
  if (!tokenizer.empty()) options.tokenizer = tokenizer;
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  std::unique_ptr<OfflineEngine> offline(new OfflineEngine);
  TS_TRY(offline->engine_, engine::Engine::create(options));
  offline->loop_ = platform::make_real_loop();
  offline->engine_loop_ = offline->engine_->start(*offline->loop_, nullptr);
  return offline;
}

Result<OfflineResult> OfflineEngine::run(std::vector<runtime::EngineRequest> requests) {
  OfflineResult result;
  if (requests.empty()) return result;  // nothing may stay posted on the loop: it would run with the next batch
  Counter counter(*loop_, requests.size(), result);
  std::optional<Error> refused;
  const TimeNs started = platform::monotonic_now();
  loop_->post([&] {
    for (runtime::EngineRequest& request : requests) {
      if (auto submitted = engine_loop_->submit(std::move(request), counter); !submitted) {
        refused = submitted.error();
        loop_->stop();
        return;
      }
    }
  });
  loop_->run();
  if (refused) return std::unexpected(*refused);
  result.elapsed = platform::monotonic_now() - started;
  return result;
}

}  // namespace tokenstone::app
