#include "engine/engine_thread.h"

#include <gtest/gtest.h>

#include <future>

namespace tokenstone::engine {
namespace {

struct Waiting final : runtime::EngineSink {
  std::promise<std::size_t> done;
  std::size_t tokens = 0;
  TimeNs last = 0;
  bool ordered = true;
  void on_output(const runtime::EngineOutput& output) override {
    ordered &= output.at >= last;
    last = output.at;
    tokens += output.tokens.size();
    if (output.finished) done.set_value(tokens);
  }
};

TEST(EngineThread, AnswersRequestsPostedFromAnotherThreadAndTimesItsSteps) {
  struct Steps final : record::StepSink {
    std::uint64_t count = 0;
    bool timed = true;
    void on_step(const record::StepRecord& step) override {
      ++count;
      timed &= step.forward_ns > 0 && step.sampling_ns >= 0 && step.step_end_time > step.step_start_time;
    }
  } steps;
  EngineOptions options;
  options.threads = 2;
  auto engine = Engine::create(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Waiting sink;
  {
    EngineThread thread(**engine, &steps);
    thread.loop().post([&] {
      runtime::EngineRequest request;
      request.prompt = {1, 2, 3};
      request.sampling.max_tokens = 8;
      request.sampling.ignore_eos = true;
      ASSERT_TRUE(thread.engine_loop().submit(std::move(request), sink).has_value());
    });
    EXPECT_EQ(sink.done.get_future().get(), 8u);
  }
  EXPECT_TRUE(sink.ordered);
  EXPECT_EQ(steps.count, 8u);
  EXPECT_TRUE(steps.timed);
}

}  // namespace
}  // namespace tokenstone::engine
