#include "runtime/engine_target.h"

#include <gtest/gtest.h>

#include "runtime/runtime_test_support.h"

namespace tokenstone::runtime {
namespace {

using record::ErrorClass;
using record::RequestSpec;

struct Recorder final : RequestSink {
  void on_sent(TimeNs t) override { calls += "s", sent = t; }
  void on_first_byte(TimeNs t) override { calls += "b", first_byte = t; }
  void on_tokens(const record::TokenEvent& event, std::string_view t) override {
    calls += "t";
    events.push_back(event);
    text += t;
    if (then) then();
  }
  void on_end(const Outcome& o) override { calls += "e", outcome = o; }

  std::string calls, text;
  TimeNs sent = 0, first_byte = 0;
  std::vector<record::TokenEvent> events;
  Outcome outcome;
  std::function<void()> then;
};

RequestSpec token_spec(std::uint32_t prompt_tokens, std::int32_t max_tokens) {
  RequestSpec spec;
  spec.request_id = "r";
  spec.prompt = engine_request(prompt_tokens, max_tokens).prompt;
  spec.sampling.max_tokens = max_tokens;
  return spec;
}

/// An engine and a target, on one loop or on two that take turns (two virtual loops, so that every interleaving of the
/// two sides can be set up by hand).
struct Fixture {
  explicit Fixture(bool two_loops, const PromptEncoder* encoder = nullptr)
      : client(two_loops ? second : engine_loop),
        scheduler(test_config()),
        engine(engine_loop, scheduler, executor, &processor, nullptr),
        target(make_engine_target({.kind = "engine", .address = "engine", .max_model_len = 100}, engine, engine_loop,
                                  client, encoder)) {}
  void run() {
    for (int turn = 0; turn < 4; ++turn) {
      engine_loop.run();
      second.run();
    }
  }

  VirtualLoop engine_loop, second;
  VirtualLoop& client;
  sched::Scheduler scheduler;
  FakeExecutor executor;
  LetterProcessor processor;
  EngineLoop engine;
  std::unique_ptr<Target> target;
};

class EngineTargets : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OneAndTwoLoops, EngineTargets, ::testing::Values(false, true),
                         [](const auto& param) { return param.param ? "TwoLoops" : "OneLoop"; });

TEST_P(EngineTargets, ARequestsLife) {
  Fixture f(GetParam());
  Recorder sink;
  const RequestSpec spec = token_spec(6, 3);
  f.target->submit(spec, sink);
  EXPECT_EQ(sink.calls, "s") << "nothing but on_sent comes from inside submit";
  f.run();
  EXPECT_EQ(sink.calls, "sbttte");
  EXPECT_EQ(sink.text, "abc");
  EXPECT_EQ(sink.sent, 0);
  EXPECT_EQ(sink.first_byte, 10);
  EXPECT_EQ(sink.events[0].arrived, 10);
  EXPECT_EQ(sink.events[2].arrived, 30);
  EXPECT_EQ(sink.events[0].tokens, 1);
  const Outcome& o = sink.outcome;
  EXPECT_EQ(o.error_class, ErrorClass::none);
  EXPECT_EQ(o.finish_reason, "length");
  EXPECT_EQ(o.finished, 30);
  EXPECT_EQ(o.usage_prompt_tokens, 6);
  EXPECT_EQ(o.usage_completion_tokens, 3);
  EXPECT_EQ(o.cached_tokens, 0);
  EXPECT_EQ(o.arrival_time, 0);
  EXPECT_EQ(o.scheduled_prefill_time, 0);
  EXPECT_EQ(o.prefill_end, 10);
  EXPECT_EQ(o.chunks, 1);
  EXPECT_EQ(o.preemptions, 0);
  EXPECT_EQ(f.target->info().max_model_len, 100);
}

TEST_P(EngineTargets, AStopStringIsAStop) {
  Fixture f(GetParam());
  Recorder sink;
  const RequestSpec spec = token_spec(6, 30);
  f.target->submit(spec, sink);
  f.run();
  EXPECT_EQ(sink.outcome.finish_reason, "stop");
  EXPECT_EQ(sink.text, "ab");
  EXPECT_EQ(sink.outcome.usage_completion_tokens, 4);
}

TEST_P(EngineTargets, ARefusalComesAsAnOutcomeAfterSubmit) {
  Fixture f(GetParam());
  Recorder sink, no_encoder;
  const RequestSpec spec = token_spec(100, 3);
  RequestSpec text = token_spec(1, 1);
  text.prompt = std::string("hello");
  f.target->submit(spec, sink);
  f.target->submit(text, no_encoder);
  EXPECT_EQ(sink.calls, "s");
  f.run();
  for (const Recorder* refused : {&sink, &no_encoder}) {
    EXPECT_EQ(refused->calls, "se");
    EXPECT_EQ(refused->outcome.error_class, ErrorClass::http_status);
    EXPECT_EQ(refused->outcome.http_status, 400);
    EXPECT_FALSE(refused->outcome.error.empty());
  }
}

TEST_P(EngineTargets, CancelEndsAtOnceAndFreesTheBlocks) {
  Fixture f(GetParam());
  Recorder sink;
  const RequestSpec spec = token_spec(6, 50);
  const Ticket ticket = f.target->submit(spec, sink);
  f.engine_loop.run_until(1);  // admitted; the first step is under way
  f.target->cancel(ticket, ErrorClass::total_timeout);
  EXPECT_EQ(sink.calls, "se");
  EXPECT_EQ(sink.outcome.error_class, ErrorClass::total_timeout);
  f.target->cancel(ticket, ErrorClass::cancelled);
  f.run();
  EXPECT_EQ(sink.calls, "se") << "on_end is the last call";
  EXPECT_EQ(f.scheduler.pool().num_active(), 0u);
  EXPECT_TRUE(f.processor.held.empty());
}

TEST_P(EngineTargets, CancelFromInsideOnTokens) {
  Fixture f(GetParam());
  Recorder sink;
  Ticket ticket;
  sink.then = [&] { f.target->cancel(ticket, ErrorClass::cancelled); };
  const RequestSpec spec = token_spec(6, 1);  // its first output is its last
  ticket = f.target->submit(spec, sink);
  f.run();
  EXPECT_EQ(sink.calls, "sbte");
  EXPECT_EQ(sink.outcome.error_class, ErrorClass::cancelled);
}

TEST_P(EngineTargets, ASinkMaySubmitTheNext) {
  Fixture f(GetParam());
  Recorder first, next;
  const RequestSpec spec = token_spec(6, 1);
  first.then = [&] { f.target->submit(spec, next); };
  f.target->submit(spec, first);
  f.run();
  EXPECT_EQ(next.calls, "sbte");
}

TEST_P(EngineTargets, ATargetMayGoWithRequestsUnderWay) {
  Fixture f(GetParam());
  Recorder sink;
  const RequestSpec spec = token_spec(6, 50);
  f.target->submit(spec, sink);
  f.engine_loop.run_until(15);
  f.target.reset();
  const std::string calls = sink.calls;
  f.run();
  EXPECT_EQ(sink.calls, calls);
  EXPECT_TRUE(f.engine.idle());
}

TEST(EngineTarget, OutputThatIsOnItsWayWhenTheClientCancelsIsDropped) {
  Fixture f(true);
  Recorder sink;
  const RequestSpec spec = token_spec(6, 2);
  const Ticket ticket = f.target->submit(spec, sink);
  f.engine_loop.run();  // the engine is done; its outputs wait in the client's loop
  f.target->cancel(ticket, ErrorClass::cancelled);
  f.run();
  EXPECT_EQ(sink.calls, "se");
}

TEST(EngineTarget, CancelThatOvertakesTheSubmissionFindsItThere) {
  Fixture f(true);
  Recorder sink;
  const RequestSpec spec = token_spec(6, 2);
  const Ticket ticket = f.target->submit(spec, sink);
  f.target->cancel(ticket, ErrorClass::cancelled);
  f.run();
  EXPECT_EQ(sink.calls, "se");
  EXPECT_TRUE(f.engine.idle());
  EXPECT_EQ(f.scheduler.counts().steps, 0u);
}

TEST(EngineTarget, ResetNeedsAnIdleEngine) {
  Fixture f(false);
  Recorder sink;
  const RequestSpec spec = token_spec(6, 2);
  f.target->submit(spec, sink);
  f.engine_loop.run_until(5);
  EXPECT_FALSE(f.target->reset_cache());
  f.run();
  EXPECT_TRUE(f.target->reset_cache());
}

struct CountingEncoder final : PromptEncoder {
  Result<std::vector<TokenId>> encode(const RequestSpec& request) const override {
    ++calls;
    const auto& text = std::get<std::string>(request.prompt);
    if (text.empty()) return usage_error("a prompt needs at least one token", "prompt");
    return std::vector<TokenId>(text.begin(), text.end());
  }
  mutable int calls = 0;
};

TEST(EngineTarget, PreparedTextIsEncodedOnceAndBeforeTheRun) {
  CountingEncoder encoder;
  Fixture f(false, &encoder);
  std::vector<RequestSpec> specs(2, token_spec(1, 2));
  specs[0].prompt = std::string("hello");
  specs[1].prompt = std::string("");
  f.target->prepare(specs);
  EXPECT_EQ(encoder.calls, 2);
  Recorder good, bad, later;
  f.target->submit(specs[0], good);
  f.target->submit(specs[1], bad);
  EXPECT_EQ(encoder.calls, 2);
  specs[0].request_id = "another";
  specs[0].prompt = std::string("abc");
  f.target->submit(specs[0], later);
  EXPECT_EQ(encoder.calls, 3) << "another request at the same address is not what was prepared";
  f.run();
  EXPECT_EQ(good.outcome.usage_prompt_tokens, 5);
  EXPECT_EQ(bad.outcome.http_status, 400);
  EXPECT_EQ(later.outcome.usage_prompt_tokens, 3);
}

}  // namespace
}  // namespace tokenstone::runtime
