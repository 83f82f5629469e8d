// The runner in virtual time against a target with known answers.

#include "loadgen/runner.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/virtual_loop.h"

namespace tokenstone::loadgen {
namespace {

using record::ErrorClass;

/// Answers each request `service` after it was sent: first token at a quarter of it, `tokens` events in all.
class FakeTarget final : public runtime::Target {
 public:
  explicit FakeTarget(Loop& loop) : loop_(loop) {}
  TimeNs service = 400 * kMillisecond;
  int tokens = 4;
  std::function<ErrorClass(const record::RequestSpec&)> failure = [](const auto&) { return ErrorClass::none; };
  std::vector<std::string> order;
  std::uint32_t open = 0, most_open = 0;

  runtime::TargetInfo info() const override { return {.kind = "sim", .address = "fake", .virtual_time = true}; }
  void prepare(std::span<const record::RequestSpec> requests) override { prepared += requests.size(); }
  Ticket submit(const record::RequestSpec& request, runtime::RequestSink& sink) override {
    order.push_back(request.request_id);
    most_open = std::max(most_open, ++open);
    const TimeNs sent = loop_.now();
    const Ticket ticket{++next_};
    sinks_[ticket.value] = &sink;
    const ErrorClass error = failure(request);
    if (error == ErrorClass::none) {
      sink.on_sent(sent);
      for (int i = 1; i <= tokens; ++i)
        at(sent + service * i / tokens, ticket, [this, i](runtime::RequestSink& s) {
          if (i == 1) s.on_first_byte(loop_.now());
          s.on_tokens({.arrived = loop_.now(), .parsed = loop_.now(), .tokens = 1}, "x");
        });
    }
    at(sent + (error == ErrorClass::none ? service : 0), ticket,
       [this, error, ticket](runtime::RequestSink& s) { end(ticket, s, error); });
    return ticket;
  }
  void cancel(Ticket ticket, ErrorClass reason) override {
    if (const auto found = sinks_.find(ticket.value); found != sinks_.end()) end(ticket, *found->second, reason);
  }
  bool reset_cache() override { return true; }
  std::size_t prepared = 0;

 private:
  template <class F>
  void at(TimeNs t, Ticket ticket, F fn) {
    loop_.at(t, [this, ticket, fn] {
      if (const auto found = sinks_.find(ticket.value); found != sinks_.end()) fn(*found->second);
    });
  }
  void end(Ticket ticket, runtime::RequestSink& sink, ErrorClass error) {
    sinks_.erase(ticket.value);
    --open;
    sink.on_end({.finished = loop_.now(),
                 .error_class = error,
                 .error = error == ErrorClass::none ? "" : "failed",
                 .usage_completion_tokens = error == ErrorClass::none ? tokens : -1});
  }
  Loop& loop_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, runtime::RequestSink*> sinks_;
};

record::RequestSpec spec(std::uint32_t index, const char* prefix) {
  record::RequestSpec s;
  s.index = index;
  s.request_id = prefix + std::to_string(index);
  s.prompt = std::string("p");
  return s;
}

class CountingSink final : public RunSink {
 public:
  std::size_t records = 0;
  std::size_t fail_after = SIZE_MAX;
  Status on_request(const record::RequestRecord&) override {
    if (++records > fail_after) return fail(ErrorKind::interrupted, "disk full");
    return {};
  }
  Status flush() override { return {}; }
};

struct Bench {
  VirtualLoop loop;
  FakeTarget target{loop};
  CountingSink sink;
  RunnerOptions options;

  Bench() {
    options.source = [](std::uint32_t i) { return spec(i, "r"); };
    options.warmup_source = [](std::uint32_t i) { return spec(i, "w"); };
  }
  RunnerOutcome run(std::uint64_t planned) {
    options.planned = planned;
    Runner runner(loop, target, &sink, options);
    return runner.run(nullptr);
  }
};

std::vector<TimeNs> every(TimeNs gap, std::size_t n) {
  std::vector<TimeNs> t;
  for (std::size_t i = 0; i < n; ++i) t.push_back(gap * static_cast<TimeNs>(i));
  return t;
}

std::array<std::size_t, 3> counts(const RunnerOutcome& outcome) {
  std::array<std::size_t, 3> c{};
  for (const auto& r : outcome.requests) ++c[!r.was_sent() && r.finished == kUnknownTime ? 2 : r.succeeded() ? 0 : 1];
  return c;
}

TEST(Runner, OpenLoopKeepsTheScheduleAndStampsEverything) {
  Bench s;
  s.options.pacer.intended = every(100 * kMillisecond, 10);
  const auto outcome = s.run(10);
  ASSERT_EQ(outcome.requests.size(), 10u);
  EXPECT_EQ(s.sink.records, 10u);
  const auto& r = outcome.requests[3];
  EXPECT_EQ(r.intended, 300 * kMillisecond);
  EXPECT_EQ(r.sent, 300 * kMillisecond);
  EXPECT_EQ(r.first_token, 400 * kMillisecond);
  EXPECT_EQ(r.last_token, 700 * kMillisecond);
  EXPECT_EQ(r.output_len, 4);
  EXPECT_EQ(r.output_len_source, record::LengthSource::engine);
  EXPECT_EQ(outcome.audit.max_in_flight, 4u);
  EXPECT_EQ(outcome.end, 1300 * kMillisecond);
  // Ten requests open for 400 ms each over 1.3 s.
  EXPECT_NEAR(outcome.audit.mean_in_flight, 4.0 / 1.3, 1e-9);
}

// ARR-02: 10/s, service 500 ms, cap 1, 8 requests: the wait is visible from the schedule and not from the send.
TEST(Runner, ACapsWaitStandsBetweenIntendedAndSent) {
  Bench s;
  s.target.service = 500 * kMillisecond;
  s.options.pacer.intended = every(100 * kMillisecond, 8);
  s.options.pacer.max_concurrency = 1;
  const auto outcome = s.run(8);
  double from_send = 0, from_intended = 0;
  for (const auto& r : outcome.requests) {
    from_send += to_millis(r.finished - r.sent) / 8;
    from_intended += to_millis(r.finished - r.intended) / 8;
  }
  EXPECT_DOUBLE_EQ(from_send, 500);
  EXPECT_DOUBLE_EQ(from_intended, 500 + 400 * 3.5);
  EXPECT_EQ(outcome.audit.waited_for_slot, 7u);
  EXPECT_EQ(outcome.audit.slot_wait_max, 2800 * kMillisecond);
}

TEST(Runner, AClosedLoopByDurationSendsUntilTheEndAndDrains) {
  Bench s;
  s.options.pacer.closed_loop = true;
  s.options.pacer.total = UINT64_MAX;
  s.options.pacer.max_concurrency = 2;
  s.options.pacer.stop_at = kSecond;
  const auto outcome = s.run(0);
  // Two slots, 400 ms each: sent at 0, 400 and 800 ms.
  EXPECT_EQ(outcome.requests.size(), 6u);
  EXPECT_EQ(outcome.end, 1200 * kMillisecond);
  EXPECT_EQ(outcome.requests[4].intended, 800 * kMillisecond);
}

TEST(Runner, ADrainLimitCutsWhatIsStillOpen) {
  Bench s;
  s.target.service = 10 * kSecond;
  s.options.pacer.intended = {0, 900 * kMillisecond};
  s.options.pacer.stop_at = kSecond;
  s.options.drain_limit = 2 * kSecond;
  const auto outcome = s.run(2);
  EXPECT_EQ(outcome.requests[1].error_class, ErrorClass::cancelled);
  EXPECT_EQ(outcome.end, 3 * kSecond);
}

// ARR-08: warm-ups stay under the cap, end before the run and are in no record.
TEST(Runner, WarmUpsKeepTheCapAndLeaveNoRecord) {
  Bench s;
  s.options.num_warmups = 100;
  s.options.warmup_concurrency = 32;
  s.options.pacer.intended = {0};
  const auto outcome = s.run(1);
  EXPECT_EQ(s.target.most_open, 32u);
  EXPECT_EQ(s.sink.records, 1u);
  ASSERT_EQ(s.target.order.size(), 101u);
  EXPECT_EQ(s.target.order.back(), "r0");
  ASSERT_EQ(outcome.requests.size(), 1u);
  EXPECT_EQ(outcome.requests[0].sent, 0);
}

TEST(Runner, FailuresAreRecordsAndTheSumAlwaysHolds) {
  Bench s;
  s.target.failure = [](const auto& r) { return r.index % 3 == 0 ? ErrorClass::reset : ErrorClass::none; };
  s.options.pacer.intended = every(kMillisecond, 30);
  const auto outcome = s.run(30);
  EXPECT_EQ(counts(outcome), (std::array<std::size_t, 3>{20, 10, 0}));
  EXPECT_FALSE(outcome.server_died);
}

TEST(Runner, AServerThatIsGoneLeavesTheRestUnsent) {
  Bench s;
  s.target.failure = [](const auto& r) { return r.index >= 10 ? ErrorClass::refused : ErrorClass::none; };
  s.options.pacer.intended = every(kMillisecond, 100);
  s.options.refused_in_a_row = 5;
  const auto outcome = s.run(100);
  EXPECT_TRUE(outcome.server_died);
  const auto c = counts(outcome);
  EXPECT_EQ(c[0], 10u);
  EXPECT_GE(c[2], 80u);
  EXPECT_EQ(outcome.requests.size(), 100u);
}

TEST(Runner, AnInterruptionDrainsAndASecondOneStops) {
  for (const bool twice : {false, true}) {
    Bench s;
    s.options.pacer.intended = every(100 * kMillisecond, 20);
    s.options.planned = 20;
    Runner runner(s.loop, s.target, &s.sink, s.options);
    s.loop.at(550 * kMillisecond, [&] { runner.interrupt("Ctrl-C"); });
    if (twice) s.loop.at(560 * kMillisecond, [&] { runner.interrupt("Ctrl-C"); });
    const auto outcome = runner.run(nullptr);
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_EQ(outcome.interruption, "Ctrl-C");
    const auto c = counts(outcome);
    EXPECT_EQ(c[0] + c[1] + c[2], 20u);
    EXPECT_EQ(c[2], 14u);
    EXPECT_EQ(c[1], twice ? 4u : 0u);
  }
}

TEST(Runner, AFullDiskEndsTheRunAsInterrupted) {
  Bench s;
  s.sink.fail_after = 3;
  s.options.pacer.intended = every(kSecond, 10);
  const auto outcome = s.run(10);
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.interruption, "disk full");
  EXPECT_EQ(outcome.requests.size(), 10u);
}

}  // namespace
}  // namespace tokenstone::loadgen
