#include "runtime/engine_loop.h"

#include <gtest/gtest.h>

#include <deque>

#include "runtime/runtime_test_support.h"

namespace tokenstone::runtime {
namespace {

using sched::FinishReason;

struct Fixture {
  explicit Fixture(bool with_text = false, sched::SchedulerConfig config = test_config())
      : scheduler(std::move(config)) {
    engine = std::make_unique<EngineLoop>(loop, scheduler, executor, with_text ? &processor : nullptr, &steps);
  }
  SeqId submit(EngineRequest request, EngineSink& sink) { return engine->submit(std::move(request), sink).value(); }

  VirtualLoop loop;
  sched::Scheduler scheduler;
  FakeExecutor executor;
  LetterProcessor processor;
  RememberingSteps steps;
  std::unique_ptr<EngineLoop> engine;
};

TEST(EngineLoop, AStepTakesItsDurationAndItsOutputsComeAtItsEnd) {
  Fixture f;
  RememberingSink sink;
  f.loop.at(5, [&] { f.submit(engine_request(6, 3), sink); });
  f.loop.run();
  EXPECT_EQ(sink.at, (std::vector<TimeNs>{15, 25, 35}));
  EXPECT_EQ(sink.tokens, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(sink.finishes, 1);
  EXPECT_EQ(sink.reason, FinishReason::length);
  EXPECT_EQ(sink.timing.arrival, 5);
  EXPECT_EQ(sink.timing.scheduled_prefill, 5);
  EXPECT_EQ(sink.timing.prefill_end, 15);
  EXPECT_EQ(sink.timing.finished, 35);
  EXPECT_EQ(sink.timing.prompt_tokens, 6);
  EXPECT_EQ(sink.timing.output_tokens, 3);
  EXPECT_EQ(sink.timing.chunks, 1);
  EXPECT_TRUE(f.engine->idle());
}

TEST(EngineLoop, RequestsOfOneInstantShareTheFirstStep) {
  Fixture f;
  RememberingSink a, b;
  f.loop.at(0, [&] { f.submit(engine_request(6, 1), a); });
  f.loop.at(0, [&] { f.submit(engine_request(6, 1), b); });
  f.loop.run();
  EXPECT_EQ(f.steps.all.size(), 1u);
  EXPECT_EQ(b.at, (std::vector<TimeNs>{10}));
}

TEST(EngineLoop, StepRecordsHaveTheirColumns) {
  Fixture f;
  f.loop.run_until(100);
  f.engine->set_step_origin(100);
  RememberingSink sink;
  f.submit(engine_request(6, 2), sink);
  f.loop.run();
  ASSERT_EQ(f.steps.all.size(), 2u);
  const record::StepRecord& prefill = f.steps.all[0];
  EXPECT_EQ(prefill.step_id, 0u);
  EXPECT_EQ(prefill.step_start_time, 0);
  EXPECT_EQ(prefill.step_end_time, 10);
  EXPECT_EQ(prefill.num_prefill_tokens, 6u);
  EXPECT_EQ(prefill.num_decode_sequences, 0u);
  EXPECT_EQ(prefill.num_batched_tokens, 6u);
  EXPECT_EQ(prefill.num_outputs, 1u);
  EXPECT_EQ(prefill.running_queue_len, 1u);
  EXPECT_EQ(prefill.prefilling_queue_len, 1u);
  EXPECT_EQ(prefill.blocks_active, 2u);
  EXPECT_EQ(prefill.blocks_free, 30u);
  EXPECT_EQ(prefill.allocated_slots, 8u);
  EXPECT_EQ(prefill.wasted_slots, 2u);
  EXPECT_EQ(prefill.query_tokens, 6u);
  EXPECT_EQ(prefill.forward_ns, 7);
  EXPECT_EQ(prefill.sampling_ns, 3);
  EXPECT_EQ(f.steps.all[1].step_id, 1u);
  EXPECT_EQ(f.steps.all[1].num_decode_sequences, 1u);
  EXPECT_EQ(f.steps.all[1].num_prefill_tokens, 0u);
}

TEST(EngineLoop, MaxTokensZeroEndsAtOnceWithLengthButNotInsideSubmit) {
  Fixture f(true);
  RememberingSink sink;
  f.submit(engine_request(6, 0), sink);
  EXPECT_EQ(sink.finishes, 0);
  EXPECT_FALSE(f.engine->idle());
  f.loop.run();
  EXPECT_EQ(sink.finishes, 1);
  EXPECT_EQ(sink.reason, FinishReason::length);
  EXPECT_TRUE(sink.tokens.empty());
  EXPECT_TRUE(f.steps.all.empty());
  EXPECT_TRUE(f.processor.held.empty());

  RememberingSink cancelled;
  f.engine->cancel(f.submit(engine_request(6, 0), cancelled));
  f.loop.run();
  EXPECT_EQ(cancelled.finishes, 0);
}

TEST(EngineLoop, BadValuesAreRefusedByName) {
  Fixture f;
  RememberingSink sink;
  const auto param_of = [&](auto change) {
    EngineRequest request = engine_request(4, 5);
    change(request);
    const auto result = f.engine->submit(std::move(request), sink);
    return result ? std::string("accepted") : result.error().param;
  };
  EXPECT_EQ(param_of([](auto& r) { r.prompt.clear(); }), "prompt");
  EXPECT_EQ(param_of([](auto& r) { r.prompt[1] = -4; }), "prompt");
  EXPECT_EQ(param_of([](auto& r) { r.prompt.resize(200, 1); }), "prompt");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.temperature = -0.1; }), "temperature");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.temperature = 0.0 / 0.0; }), "temperature");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.top_p = 0; }), "top_p");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.top_p = 1.1; }), "top_p");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.min_p = 1.5; }), "min_p");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.top_k = -2; }), "top_k");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.max_tokens = -1; }), "max_tokens");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.min_tokens = -1; }), "min_tokens");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.min_tokens = 6; }), "min_tokens");
  EXPECT_EQ(param_of([](auto& r) { r.sampling.stop = {"x", ""}; }), "stop");
  EXPECT_TRUE(f.engine->idle());
  EXPECT_EQ(param_of([](auto&) {}), "accepted");
}

TEST(EngineLoop, WhatCanNeverFitSaysBothNumbers) {
  Fixture f;
  RememberingSink sink;
  const auto refused = f.engine->submit(engine_request(100, 1), sink);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::too_large);
  EXPECT_NE(refused.error().message.find("100 tokens"), std::string::npos);
}

TEST(EngineLoop, ACancelledSequenceIsSilentInEveryState) {
  sched::SchedulerConfig config = test_config();
  config.max_num_seqs = 2;
  Fixture f(true, config);
  RememberingSink kept, running, waiting;
  f.submit(engine_request(4, 5, 1000), kept);
  const SeqId second = f.submit(engine_request(4, 5, 2000), running);
  const SeqId third = f.submit(engine_request(4, 5, 3000), waiting);
  f.loop.at(15, [&] {  // while a step is under way
    f.engine->cancel(second);
    f.engine->cancel(third);
    f.engine->cancel(third);
  });
  f.loop.run();
  EXPECT_EQ(running.at, (std::vector<TimeNs>{10}));
  EXPECT_TRUE(waiting.at.empty());
  EXPECT_EQ(kept.finishes, 1);
  EXPECT_EQ(f.scheduler.pool().num_active(), 0u);
  EXPECT_TRUE(f.processor.held.empty());
  EXPECT_EQ(f.engine->stats().requests_finished_abort, 2u);
}

TEST(EngineLoop, ASinkMaySubmitAndCancelAnotherWhoseOutputIsDue) {
  Fixture f;
  RememberingSink first, second, third;
  SeqId other;
  bool done = false;
  first.then = [&](const EngineOutput&) {
    if (std::exchange(done, true)) return;
    EXPECT_EQ(f.scheduler.counts().blocks_active, 2u) << "all state is applied before a sink is called";
    f.engine->cancel(other);
    f.submit(engine_request(4, 1, 3000), third);
  };
  f.submit(engine_request(4, 2, 1000), first);
  other = f.submit(engine_request(4, 2, 2000), second);
  f.loop.run();
  EXPECT_TRUE(second.at.empty()) << "its first output was due in the same step";
  EXPECT_EQ(third.at, (std::vector<TimeNs>{20}));
  EXPECT_EQ(first.finishes, 1);
}

TEST(EngineLoop, ASinkMayCancelItself) {
  Fixture f(true);
  RememberingSink sink;
  SeqId seq;
  sink.then = [&](const EngineOutput& output) {
    f.engine->cancel(seq);
    EXPECT_EQ(output.timing->prompt_tokens, 4);
  };
  seq = f.submit(engine_request(4, 5), sink);
  f.loop.run();
  EXPECT_EQ(sink.at.size(), 1u);
  EXPECT_TRUE(f.engine->idle());
  EXPECT_TRUE(f.processor.held.empty());
}

TEST(EngineLoop, AStopStringEndsTheSequenceAndFreesItsBlocks) {
  Fixture f(true);
  RememberingSink sink;
  f.submit(engine_request(4, 20), sink);  // a b c d: "cd" stops
  f.loop.run();
  EXPECT_EQ(sink.text, "ab");
  EXPECT_EQ(sink.stop_reason, "cd");
  EXPECT_EQ(sink.reason, FinishReason::stop);
  EXPECT_EQ(sink.timing.output_tokens, 4);
  EXPECT_EQ(f.scheduler.pool().num_active(), 0u);
  EXPECT_TRUE(f.processor.held.empty());
  EXPECT_EQ(f.engine->stats().requests_finished_stop, 1u);
}

TEST(EngineLoop, AStopStringWinsOverTheLimitThatTheSameTokenReaches) {
  Fixture f(true);
  RememberingSink sink;
  f.submit(engine_request(4, 4), sink);
  f.loop.run();
  EXPECT_EQ(sink.reason, FinishReason::stop);
  EXPECT_EQ(f.engine->stats().requests_finished_length, 0u);
}

TEST(EngineLoop, TextHeldBackComesWithTheEnd) {
  Fixture f(true);
  RememberingSink sink, ended;
  f.submit(engine_request(4, 3), sink);  // a b c and the limit
  f.loop.run();
  EXPECT_EQ(sink.text, "abc");
  f.executor.choose = [](const sched::PlanRow& row) { return row.num_output_tokens == 1 ? 0 : 3; };
  f.submit(engine_request(4, 9), ended);  // c and end-of-text
  f.loop.run();
  EXPECT_EQ(ended.text, "c");
  EXPECT_EQ(ended.tokens, (std::vector<TokenId>{3}));
  EXPECT_EQ(ended.timing.output_tokens, 2) << "the end-of-text token counts";
  EXPECT_EQ(ended.reason, FinishReason::stop);
}

TEST(EngineLoop, StatsAddUp) {
  Fixture f;
  RememberingSink a, b;
  f.submit(engine_request(9, 3), a);
  f.loop.run();
  f.submit(engine_request(9, 2), b);
  f.loop.run();
  const EngineStats stats = f.engine->stats();
  EXPECT_EQ(stats.prompt_tokens, 18u);
  EXPECT_EQ(stats.generation_tokens, 5u);
  EXPECT_EQ(stats.steps, 5u);
  EXPECT_EQ(stats.prefix_query_tokens, 18u);
  EXPECT_EQ(stats.prefix_hit_tokens, 8u);
  EXPECT_EQ(stats.requests_finished_length, 2u);
  EXPECT_EQ(stats.num_blocks, 32u);
  EXPECT_EQ(stats.blocks_active, 0u);
  EXPECT_EQ(b.timing.cached_tokens, 8);
  EXPECT_TRUE(f.engine->reset_prefix_cache());
}

TEST(EngineLoop, ResetIsRefusedWhileBlocksAreInUse) {
  Fixture f;
  RememberingSink sink;
  f.submit(engine_request(9, 3), sink);
  f.loop.at(5, [&] { EXPECT_FALSE(f.engine->reset_prefix_cache()); });
  f.loop.run();
  EXPECT_EQ(sink.finishes, 1);
}

TEST(EngineLoop, AnEngineMayGoWhileItsStepIsUnderWay) {
  Fixture f;
  RememberingSink sink;
  f.submit(engine_request(4, 3), sink);
  f.loop.run_until(15);
  f.engine.reset();
  f.loop.run();
  EXPECT_EQ(sink.at.size(), 1u);
}

/// A clock that moves by one nanosecond with each look at it, and a queue of posted functions.
class TickingLoop final : public Loop {
 public:
  TimeNs now() const override { return ++now_; }
  TimerId at(TimeNs, Callback fn) override { return post(std::move(fn)), TimerId{1}; }
  void cancel(TimerId) override {}
  void watch(int, Readiness, IoCallback) override {}
  void rewatch(int, Readiness) override {}
  void unwatch(int) override {}
  void post(Callback fn) override { queue_.push_back(std::move(fn)); }
  void run_until(TimeNs) override {
    for (; !queue_.empty(); ++turns) {
      Callback fn = std::move(queue_.front());
      queue_.pop_front();
      fn();
    }
  }
  void stop() override { queue_.clear(); }
  int turns = 0;

 private:
  mutable TimeNs now_ = 0;
  std::deque<Callback> queue_;
};

TEST(EngineLoop, ARealExecutorRunsInlineAndTheLoopGetsATurnBetweenSteps) {
  TickingLoop loop;
  sched::Scheduler scheduler(test_config());
  FakeExecutor executor;
  executor.real_time = true;
  executor.step_ns = 1'000'000;  // not waited for
  executor.on_execute = [&] {
    for (int i = 0; i < 50; ++i) loop.now();  // fifty nanoseconds of work
  };
  RememberingSteps steps;
  EngineLoop engine(loop, scheduler, executor, nullptr, &steps);
  RememberingSink sink;
  ASSERT_TRUE(engine.submit(engine_request(4, 3), sink));
  loop.run();
  EXPECT_EQ(sink.finishes, 1);
  ASSERT_EQ(steps.all.size(), 3u);
  EXPECT_EQ(loop.turns, 3) << "one posted step each";
  EXPECT_EQ(steps.all[0].schedule_ns, 1);
  EXPECT_EQ(steps.all[0].detokenize_ns, 1);
  EXPECT_EQ(steps.all[0].step_end_time - steps.all[0].step_start_time, 52);
  EXPECT_GT(steps.all[1].step_start_time, steps.all[0].step_end_time);
}

}  // namespace
}  // namespace tokenstone::runtime
