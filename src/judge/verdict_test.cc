#include <gtest/gtest.h>

#include <cmath>

#include "judge/verdict.h"
#include "support/sample_run.h"

namespace tokenstone::judge {
namespace {

using record::ErrorClass;
using record::LengthSource;
using record::RunResult;
using tokenstone::testing::answered_request;
using tokenstone::testing::failed_request;
using tokenstone::testing::sample_run;

Verdict verdict_of(const RunResult& run) { return judge(run, record::compute_metrics(run)); }

RunResult run_with_failures(std::uint32_t total, std::uint32_t failed) {
  RunResult run;
  run.plan.request_rate = HUGE_VAL;
  run.plan.num_warmups = 8;
  for (std::uint32_t i = 0; i < total; ++i)
    run.requests.push_back(i < failed ? failed_request(i, 0, ErrorClass::reset, 0)
                                      : answered_request(i, 0, kMillisecond, kMillisecond, 3));
  run.window_end = kSecond;
  return run;
}

std::optional<Finding> finding(const Verdict& verdict, std::string_view code) {
  for (const Finding& f : verdict.findings)
    if (f.code == code) return f;
  return std::nullopt;
}

TEST(Verdict, WordsAndExitCodes) {
  RunResult run = run_with_failures(20, 0);
  EXPECT_EQ(verdict_of(run).word, Word::done);
  EXPECT_EQ(verdict_of(run).exit_code, 0);
  run.plan.slo = {{"ttft", 0.5, 5, "ttft.p50<5ms"}};
  EXPECT_EQ(verdict_of(run).word, Word::pass);
  EXPECT_EQ(verdict_of(run).exit_code, 0);
  run.plan.slo.push_back({"tpot", 0.5, 0.5, "tpot.p50<500us"});
  EXPECT_EQ(verdict_of(run).word, Word::fail);
  EXPECT_EQ(verdict_of(run).exit_code, 2);
  run.server_died = true;
  EXPECT_EQ(verdict_of(run).word, Word::invalid);
  EXPECT_EQ(verdict_of(run).exit_code, 3);
  run.interrupted = true;
  run.interruption = "Ctrl-C";
  EXPECT_EQ(verdict_of(run).exit_code, 4);
  EXPECT_NE(verdict_of(run).reasons.front().find("Ctrl-C"), std::string::npos);
  EXPECT_EQ(to_string(Word::pass), "PASS");
  EXPECT_EQ(to_string(Word::fail), "FAIL");
  EXPECT_EQ(to_string(Word::done), "DONE");
  EXPECT_EQ(to_string(Word::invalid), "INVALID");
}

TEST(Verdict, TheLimitItselfIsWithin) {
  RunResult run = run_with_failures(1, 0);
  run.plan.slo = {{"ttft", 0.5, 1, ""}};
  EXPECT_TRUE(verdict_of(run).objectives.at(0).pass);
}

TEST(Verdict, FiveInAHundredMayFail) {
  EXPECT_EQ(verdict_of(run_with_failures(100, 5)).exit_code, 0);
  const Verdict more = verdict_of(run_with_failures(100, 6));
  EXPECT_EQ(more.exit_code, 3);
  EXPECT_EQ(more.reasons.at(0), "6 of 100 requests failed (6.0 %); at most 5 % may");
}

TEST(Verdict, AllFailedOrNothingDoneIsInvalid) {  // FAIL-01
  const Verdict all = verdict_of(run_with_failures(10, 10));
  EXPECT_EQ(all.exit_code, 3);
  EXPECT_EQ(all.reasons.at(0), "all 10 requests failed");
  EXPECT_EQ(verdict_of(RunResult{}).exit_code, 3);
  EXPECT_EQ(verdict_of(RunResult{}).reasons.at(0), "no request completed");
}

TEST(Verdict, AnObjectiveThatNothingMeasuresFails) {
  RunResult run = run_with_failures(0, 0);
  run.requests = {answered_request(0, 0, kMillisecond, 0, 1)};
  run.plan.slo = {{"tpot", 0.5, 100, "tpot.p50<100ms"}};
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(verdict.exit_code, 2);
  EXPECT_FALSE(verdict.objectives.at(0).value_ms.has_value());
}

TEST(Findings, AHealthyRunHasNone) {
  RunResult run = sample_run();
  std::erase_if(run.requests, [](const auto& r) { return !r.succeeded(); });
  for (const Finding& f : verdict_of(run).findings)
    ADD_FAILURE() << f.code << ' ' << f.text << " (" << f.evidence << ')';
}

TEST(Findings, Failures) {
  const auto f = finding(verdict_of(sample_run()), "V01");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->evidence, "2 http_status 503, 1 reset; first: HTTP 503: overloaded, \"retry\"");
}

TEST(Findings, TargetDoesNotKeepUp) {
  RunResult run = sample_run();
  for (auto& r : run.requests)
    r.finished += (r.sent - run.window_start) / 4;  // answers come at four fifths of the pace
  const auto f = finding(verdict_of(run), "V02");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->evidence, "answers came at 80 % of the offered 12.0 req/s");
}

TEST(Findings, SlowAnswersAloneAreNoSaturation) {
  RunResult run = sample_run();
  for (auto& r : run.requests) r.finished += 60 * kSecond;
  EXPECT_FALSE(finding(verdict_of(run), "V02").has_value());
}

TEST(Findings, HeldBackByTheCap) {
  RunResult run = sample_run();
  run.audit.waited_for_slot = 12;
  run.audit.slot_wait_max = 1500 * kMillisecond;
  ASSERT_TRUE(finding(verdict_of(run), "V03").has_value());
  run.plan.request_rate = HUGE_VAL;  // a closed loop always waits: that is its nature
  EXPECT_FALSE(finding(verdict_of(run), "V03").has_value());
}

TEST(Findings, ShorterThanAsked) {  // TOK-02
  RunResult run = sample_run();
  run.requests[5].planned_output_len = 128;
  EXPECT_FALSE(finding(verdict_of(run), "V04").has_value()) << "without ignore_eos an answer may end early";
  run.plan.ignore_eos = true;
  const auto f = finding(verdict_of(run), "V04");
  ASSERT_TRUE(f.has_value());
  EXPECT_NE(f->evidence.find("of 128 tokens"), std::string::npos);
}

TEST(Findings, EstimatedLengths) {  // TOK-05
  RunResult run = sample_run();
  run.requests[5].output_len_source = LengthSource::events;
  const auto f = finding(verdict_of(run), "V05");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->evidence, "0 by our tokenizer, 1 by counting events");
}

TEST(Findings, MissingDone) {
  RunResult run = sample_run();
  run.requests[5].missing_done = true;
  EXPECT_TRUE(finding(verdict_of(run), "V06").has_value());
}

TEST(Findings, NoWarmUp) {
  RunResult run = sample_run();
  run.plan.num_warmups = 0;
  EXPECT_TRUE(finding(verdict_of(run), "V07").has_value());
  run.plan.virtual_time = true;
  EXPECT_FALSE(finding(verdict_of(run), "V07").has_value());
}

TEST(Findings, SendLag) {
  RunResult run = sample_run();
  for (TimeNs& lag : run.audit.send_lag) lag += 3 * kMillisecond;
  EXPECT_TRUE(finding(verdict_of(run), "V08").has_value());
}

TEST(Findings, OtherTokenizerOnTheServer) {  // DAT-09, DAT-22
  RunResult run = sample_run();
  for (auto& r : run.requests)
    if (r.succeeded()) {
      r.planned_prompt_len = 1000;
      r.prompt_len = 5128;
    }
  const auto f = finding(verdict_of(run), "V09");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->evidence, "on average 5,128 against 1,000 planned");
  for (auto& r : run.requests) r.prompt_len = r.planned_prompt_len + 1;  // a begin token
  EXPECT_FALSE(finding(verdict_of(run), "V09").has_value());
}

TEST(Findings, NominalLengths) {
  RunResult run = sample_run();
  run.requests[5].prompt_len_nominal = true;
  EXPECT_TRUE(finding(verdict_of(run), "V10").has_value());
}

TEST(Findings, TooFewSamplesForTheObjective) {
  RunResult run = sample_run();
  run.plan.slo = {{"ttft", 0.999, 500, "ttft.p99.9<500ms"}};
  const auto f = finding(verdict_of(run), "V11");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->evidence, "1,197 samples; p99.9 needs 10,000");
}

TEST(Findings, BunchedTokens) {  // TIM-18
  RunResult run = sample_run();
  for (auto& r : run.requests)
    for (std::size_t i = 0; i < r.events.size(); ++i) r.events[i].arrived = r.events[i / 8 * 8].arrived;
  EXPECT_TRUE(finding(verdict_of(run), "V12").has_value());
}

TEST(Findings, EmptyAnswers) {  // TIM-04
  RunResult run = sample_run();
  run.requests[5] = answered_request(5, run.requests[5].sent, kMillisecond, 0, 0);
  const auto f = finding(verdict_of(run), "V13");
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->text, "answers without any token: 1; they have no TTFT");
}

TEST(Findings, EachHasEvidenceAndAdvice) {
  RunResult run = sample_run();
  run.plan.num_warmups = 0;
  run.requests[5].missing_done = run.requests[5].prompt_len_nominal = true;
  run.requests[6].output_len_source = LengthSource::events;
  const Verdict verdict = verdict_of(run);
  EXPECT_GE(verdict.findings.size(), 5u);
  for (const Finding& f : verdict.findings)
    EXPECT_FALSE(f.text.empty() || f.evidence.empty() || f.advice.empty()) << f.code;
}

}  // namespace
}  // namespace tokenstone::judge
