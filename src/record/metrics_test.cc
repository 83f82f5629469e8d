// The numbers by hand, and the faults that users of other tools reported (ids of the kind TIM-01 name them).
#include <gtest/gtest.h>

#include <cmath>

#include "record/metrics.h"
#include "record/spread.h"
#include "support/sample_run.h"

namespace tokenstone::record {
namespace {

using tokenstone::testing::answered_request;
using tokenstone::testing::failed_request;

constexpr TimeNs kMs = kMillisecond;

RunResult run_of(std::vector<RequestRecord> requests, double window_s) {
  RunResult run;
  run.plan.request_rate = 10;
  run.requests = std::move(requests);
  run.window_end = from_seconds(window_s);
  return run;
}

TEST(Metrics, OneRequestByHand) {
  RequestRecord r = answered_request(0, 100 * kMs, 200 * kMs, 10 * kMs, 5);
  r.intended = 90 * kMs;
  const MetricSet m = compute_metrics(run_of({r}, 2));
  EXPECT_DOUBLE_EQ(m.sample("ttft").mean(), 200);
  EXPECT_DOUBLE_EQ(m.sample("ttft_intended").mean(), 210);
  EXPECT_DOUBLE_EQ(m.sample("e2el").mean(), 240);
  EXPECT_DOUBLE_EQ(m.sample("e2el_intended").mean(), 250);
  EXPECT_DOUBLE_EQ(m.sample("tpot").mean(), 10);
  EXPECT_EQ(m.sample("itl").count(), 4u);
  EXPECT_NEAR(m.sample("e2el").mean(), m.sample("ttft").mean() + m.sample("itl").sum(), 1e-9)
      << "E2E = TTFT + sum of ITLs";
  EXPECT_DOUBLE_EQ(m.sample("queue").mean(), 10);
  EXPECT_DOUBLE_EQ(*m.value("request_throughput"), 0.5);
  EXPECT_DOUBLE_EQ(*m.value("output_throughput"), 2.5);
  EXPECT_DOUBLE_EQ(*m.value("input_throughput"), 16);
  EXPECT_DOUBLE_EQ(*m.value("total_token_throughput"), 18.5);
  EXPECT_EQ(m.count("peak_in_flight"), 1u);
  EXPECT_FALSE(m.value("request_goodput").has_value()) << "no limits, no goodput";
  EXPECT_FALSE(m.value("slo_attainment").has_value());
}

TEST(Metrics, NothingMeasuredIsAbsent) {  // REP-01, REP-03, FAIL-01, FAIL-04
  for (const MetricSet& m :
       {compute_metrics(RunResult{}), compute_metrics(run_of({failed_request(0, 0, ErrorClass::refused, 0)}, 0))}) {
    for (const char* key : {"ttft", "tpot", "itl", "e2el"}) EXPECT_TRUE(m.sample(key).empty());
    for (const char* key :
         {"request_throughput", "output_throughput", "max_output_tokens_per_s", "zero_gap_share", "engine_step_mean"})
      EXPECT_FALSE(m.value(key).has_value()) << key;
  }
}

TEST(Metrics, OneTokenAnswerHasNoTpot) {
  RunResult run = run_of({answered_request(0, 0, 150 * kMs, 0, 1)}, 1);
  run.plan.goodput = {{"ttft", std::nullopt, 200, ""}, {"tpot", std::nullopt, 1, ""}};
  const MetricSet m = compute_metrics(run);
  EXPECT_TRUE(m.sample("tpot").empty());
  EXPECT_TRUE(m.sample("itl").empty());
  EXPECT_EQ(m.sample("e2el").count(), 1u);
  EXPECT_EQ(m.good, 1u) << "judged by the other limits";
}

TEST(Goodput, LimitsAreMilliseconds) {  // GDP-01
  RunResult run =
      run_of({answered_request(0, 0, 150 * kMs, 10 * kMs, 2), answered_request(1, 0, 250 * kMs, 10 * kMs, 2)}, 1);
  run.plan.goodput = {{"ttft", std::nullopt, 200, "ttft:200"}};
  const MetricSet m = compute_metrics(run);
  EXPECT_EQ(m.good, 1u);
  EXPECT_DOUBLE_EQ(*m.value("request_goodput"), 1);
}

TEST(Goodput, CountsFailuresAndMissesAsBad) {  // GDP-02
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 5; ++i) requests.push_back(answered_request(i, 0, 100 * kMs, 10 * kMs, 3));
  for (std::uint32_t i = 5; i < 8; ++i) requests.push_back(answered_request(i, 0, 100 * kMs, 60 * kMs, 3));
  for (std::uint32_t i = 8; i < 10; ++i) requests.push_back(failed_request(i, 0, ErrorClass::reset, 0));
  RunResult run = run_of(requests, 4);
  run.plan.goodput = {{"ttft", std::nullopt, 200, ""}, {"tpot", std::nullopt, 50, ""}};
  const MetricSet m = compute_metrics(run);
  EXPECT_DOUBLE_EQ(*m.value("request_goodput"), 1.25);
  EXPECT_DOUBLE_EQ(*m.value("slo_attainment"), 50);
}

TEST(Goodput, InOutputTokens) {  // GDP-05
  RunResult run = run_of({answered_request(0, 0, 100 * kMs, kMs, 1000), answered_request(1, 0, 900 * kMs, kMs, 10)}, 2);
  run.plan.goodput = {{"ttft", std::nullopt, 200, ""}};
  EXPECT_DOUBLE_EQ(*compute_metrics(run).value("output_token_goodput"), 500);
}

TEST(Goodput, ItlQuantileOfOneRequest) {
  RequestRecord r = answered_request(0, 0, 10 * kMs, 10 * kMs, 11);
  r.events.back().arrived += 90 * kMs;
  EXPECT_DOUBLE_EQ(*request_value(r, {"itl", 0.5, 0, ""}), 10);
  EXPECT_NEAR(*request_value(r, {"itl", std::nullopt, 0, ""}), 10 + 0.91 * 90, 1e-9) << "p99 unless told otherwise";
}

TEST(Failures, AreInNoLatencyOrTokenSum) {  // FAIL-02, FAIL-08
  RequestRecord late = failed_request(1, 0, ErrorClass::first_token_timeout, 200);
  late.first_token = late.last_token = 30 * kSecond;
  late.finished = 30 * kSecond;
  late.output_len = 7;
  late.prompt_len = 1000;
  const MetricSet m = compute_metrics(run_of({answered_request(0, 0, 100 * kMs, 10 * kMs, 3), late}, 30));
  EXPECT_EQ(m.sample("ttft").count(), 1u);
  EXPECT_DOUBLE_EQ(m.sample("e2el").max(), 120);
  EXPECT_EQ(m.count("total_output_tokens"), 3u);
  EXPECT_EQ(m.count("total_input_tokens"), 32u);
  EXPECT_EQ(m.count("completed"), 1u);
  EXPECT_EQ(m.count("failed"), 1u);
}

TEST(Failures, AreGroupedByClassAndStatus) {  // FAIL-13
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 5; ++i) requests.push_back(failed_request(i, i * kSecond, ErrorClass::reset, 0));
  for (std::uint32_t i = 5; i < 35; ++i)
    requests.push_back(failed_request(i, i * kSecond, ErrorClass::http_status, 503));
  for (std::uint32_t i = 35; i < 37; ++i)
    requests.push_back(failed_request(i, i * kSecond, ErrorClass::total_timeout, 0));
  requests.push_back(failed_request(37, 0, ErrorClass::malformed_event, 200));
  const MetricSet m = compute_metrics(run_of(requests, 40));
  ASSERT_EQ(m.errors.size(), 4u);
  EXPECT_EQ(m.errors[0].error_class, ErrorClass::http_status);
  EXPECT_EQ(m.errors[0].http_status, 503);
  EXPECT_EQ(m.errors[0].count, 30u);
  EXPECT_EQ(m.errors[0].first, 5 * kSecond + 5 * kMs);
  EXPECT_EQ(m.errors[0].last, 34 * kSecond + 5 * kMs);
  EXPECT_NE(m.errors[0].sample.find("503"), std::string::npos);
  EXPECT_EQ(m.errors[1].count, 5u);
  EXPECT_EQ(m.errors[2].count, 2u);
  EXPECT_EQ(m.errors[3].error_class, ErrorClass::malformed_event);
  EXPECT_EQ(m.count("failed"), 38u);
}

TEST(Tokens, AnswersWithoutATokenHaveNoTtft) {  // TIM-04
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 6; ++i) requests.push_back(answered_request(i, 0, 5 * kMs, 0, 0));
  for (std::uint32_t i = 6; i < 10; ++i) requests.push_back(answered_request(i, 0, 100 * kMs, 10 * kMs, 3));
  RunResult run = run_of(requests, 1);
  run.plan.goodput = {{"tpot", std::nullopt, 50, ""}};
  const MetricSet m = compute_metrics(run);
  EXPECT_EQ(m.sample("ttft").count(), 4u);
  EXPECT_DOUBLE_EQ(m.sample("ttft").quantile(0.5).value, 100);
  EXPECT_EQ(m.count("no_token"), 6u);
  EXPECT_EQ(m.good, 4u) << "an answer without a token is not good";
}

TEST(Tokens, UsageAfterTheLastTokenMovesNothing) {  // TIM-03, TIM-06
  RequestRecord r = answered_request(0, 0, 100 * kMs, 0, 1);
  r.finished = r.last_token + 2 * kSecond;  // the usage chunk, then the end
  r.output_len = 40;
  const MetricSet m = compute_metrics(run_of({r}, 3));
  EXPECT_DOUBLE_EQ(m.sample("ttft").mean(), 100);
  EXPECT_DOUBLE_EQ(m.sample("e2el").mean(), 100);
}

TEST(Tokens, SeveralInOneEvent) {  // TOK-06, TOK-08
  RequestRecord r = answered_request(0, 0, 30 * kMs, 30 * kMs, 3);
  for (TokenEvent& e : r.events) e.tokens = 3;
  r.output_len = 9;
  const MetricSet m = compute_metrics(run_of({r}, 1));
  EXPECT_EQ(m.sample("itl").count(), 2u);
  EXPECT_DOUBLE_EQ(m.sample("itl").mean(), 30) << "between events";
  EXPECT_EQ(m.sample("itl_per_token").count(), 6u);
  EXPECT_DOUBLE_EQ(m.sample("itl_per_token").mean(), 10);
  EXPECT_DOUBLE_EQ(m.sample("tpot").mean(), 60.0 / 8);
  EXPECT_DOUBLE_EQ(*m.value("multi_token_event_share"), 100);
  EXPECT_EQ(m.count("total_output_tokens"), 9u);
  EXPECT_DOUBLE_EQ(*m.value("peak_output_tokens_per_s"), 9);
  EXPECT_DOUBLE_EQ(*m.value("max_output_tokens_per_s"), 3) << "vLLM counts events";
}

TEST(Tokens, ZeroGapsAreValid) {  // TIM-16, TIM-18
  RequestRecord r = answered_request(0, 0, 10 * kMs, 0, 2);
  const MetricSet m = compute_metrics(run_of({r}, 1));
  EXPECT_EQ(m.sample("itl").count(), 1u);
  EXPECT_DOUBLE_EQ(m.sample("itl").max(), 0);
  EXPECT_DOUBLE_EQ(*m.value("zero_gap_share"), 100);
}

TEST(Tokens, SourcesAreKept) {  // TOK-05, TOK-12
  std::vector<RequestRecord> requests = {answered_request(0, 0, kMs, kMs, 2), answered_request(1, 0, kMs, kMs, 2),
                                         answered_request(2, 0, kMs, kMs, 2)};
  requests[1].output_len_source = LengthSource::events;
  requests[2].output_len = -1;
  requests[2].output_len_source = LengthSource::unknown;
  const MetricSet m = compute_metrics(run_of(requests, 1));
  EXPECT_EQ(m.length_sources.at(LengthSource::usage), 1u);
  EXPECT_EQ(m.length_sources.at(LengthSource::events), 1u);
  EXPECT_EQ(m.length_sources.at(LengthSource::unknown), 1u);
  EXPECT_EQ(m.sample("tpot").count(), 2u);
  EXPECT_EQ(m.count("total_output_tokens"), 4u) << "what is not known is not guessed";
}

TEST(Tokens, ItlAndTpotWeighDifferently) {  // TIM-21
  const MetricSet m = compute_metrics(
      run_of({answered_request(0, 0, kMs, 100 * kMs, 2), answered_request(1, 0, kMs, 10 * kMs, 200)}, 3));
  EXPECT_DOUBLE_EQ(m.sample("tpot").mean(), 55) << "one value per request";
  EXPECT_NEAR(m.sample("itl").mean(), (100 + 199 * 10) / 200.0, 1e-9) << "one value per gap";
}

TEST(Spread, SurvivesLargeValues) {  // REP-08, on population spread
  stats::Sample sample;
  for (const double ns : {12000000001.0, 12000000101.0, 11999999901.0, 12000000051.0, 11999999951.0}) sample.add(ns);
  EXPECT_NEAR(sample.sample_std(), 79.057, 0.001);
  EXPECT_NEAR(sample.population_std(), 70.711, 0.001);
}

TEST(Window, ByDurationKeepsTheDrainApart) {  // REP-14
  // Sent at 0, 5 and 9 s, each answer takes 3 s with a token each half second: the last ends after the window of 10 s.
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const TimeNs sent = i == 0 ? 0 : i == 1 ? 5 * kSecond : 9 * kSecond;
    requests.push_back(answered_request(i, sent, kSecond / 2, kSecond / 2, 6));
  }
  RunResult run = run_of(requests, 10);
  run.plan.duration = 10 * kSecond;
  const MetricSet m = compute_metrics(run);
  EXPECT_EQ(m.count("completed"), 3u);
  EXPECT_EQ(m.count("completed_in_window"), 2u);
  EXPECT_EQ(m.count("completed_in_drain"), 1u);
  EXPECT_DOUBLE_EQ(*m.value("request_throughput"), 0.2);
  EXPECT_DOUBLE_EQ(*m.value("output_throughput"), (6 + 6 + 1) / 10.0)
      << "the token at 9.5 s; the one at 10 s is outside";
  EXPECT_EQ(m.sample("e2el").count(), 3u) << "latencies by the send: the slow ones are not lost";
  run.requests = {answered_request(0, 0, 15 * kSecond, kMs, 2)};
  const MetricSet none = compute_metrics(run);
  EXPECT_DOUBLE_EQ(*none.value("request_throughput"), 0);
  EXPECT_DOUBLE_EQ(*none.value("output_throughput"), 0);
}

TEST(Window, UnknownEventCountsShareTheTotal) {
  RequestRecord r = answered_request(0, 0, kSecond, kSecond, 4);  // events at 1, 2, 3, 4 s
  for (TokenEvent& e : r.events) e.tokens = -1;
  r.output_len = 40;
  RunResult run = run_of({r}, 2.5);
  run.plan.duration = from_seconds(2.5);
  EXPECT_DOUBLE_EQ(*compute_metrics(run).value("output_throughput"), 20 / 2.5);
}

TEST(Peaks, VllmCountsTouchedSeconds) {
  // One request after the other, 0.4 s each: never two at once, but three touch each second.
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 10; ++i) {
    RequestRecord r = answered_request(i, i * 400 * kMs, 100 * kMs, 100 * kMs, 3);
    r.finished = r.last_token;
    requests.push_back(r);
  }
  const MetricSet m = compute_metrics(run_of(requests, 4));
  EXPECT_EQ(m.count("peak_in_flight"), 1u);
  EXPECT_EQ(m.count("max_concurrent_requests"), 3u);
  EXPECT_DOUBLE_EQ(*m.value("max_output_tokens_per_s"), 8);
}

TEST(Peaks, ExactConcurrency) {
  std::vector<RequestRecord> requests;
  for (std::uint32_t i = 0; i < 3; ++i) {
    RequestRecord r = answered_request(i, i * 100 * kMs, 100 * kMs, 100 * kMs, 1);
    r.finished = r.sent + 200 * kMs;
    requests.push_back(r);
  }
  const MetricSet m = compute_metrics(run_of(requests, 0.4));
  EXPECT_EQ(m.count("peak_in_flight"), 2u) << "one ends as the third begins";
  EXPECT_DOUBLE_EQ(*m.value("mean_in_flight"), 1.5);
}

TEST(Offered, ByRateStagesAndTrace) {
  RunResult run = run_of({answered_request(0, 0, kMs, kMs, 1), answered_request(1, 2 * kSecond, kMs, kMs, 1),
                          answered_request(2, 4 * kSecond, kMs, kMs, 1)},
                         5);
  EXPECT_DOUBLE_EQ(*offered_rate(run), 10);
  run.plan.stages = {{1, 30 * kSecond}, {5, 10 * kSecond}};
  EXPECT_DOUBLE_EQ(*offered_rate(run), 2);
  run.plan.stages.clear();
  run.plan.request_rate = 0;
  EXPECT_DOUBLE_EQ(*offered_rate(run), 0.5) << "a trace's own rate";
  run.plan.request_rate = HUGE_VAL;
  EXPECT_FALSE(offered_rate(run).has_value());
}

TEST(Engine, FromStepRecords) {
  const MetricSet m = compute_metrics(tokenstone::testing::sample_run());
  EXPECT_DOUBLE_EQ(*m.value("engine_queue_max"), 2);
  EXPECT_DOUBLE_EQ(*m.value("engine_queue_mean"), 8 * 2 / 400.0);
  EXPECT_DOUBLE_EQ(*m.value("engine_batch_mean"), 4.5);
  EXPECT_DOUBLE_EQ(*m.value("engine_kv_free_min"), 21);
  EXPECT_DOUBLE_EQ(*m.value("engine_prefix_hits"), 25);
  EXPECT_DOUBLE_EQ(*m.value("engine_preemptions"), 1);
  EXPECT_NEAR(*m.value("engine_step_mean"), 9 + 199.5e-6, 1e-9);
}

TEST(Counts, AddUpToThePlan) {
  RunResult run = tokenstone::testing::sample_run();
  run.requests[7] = RequestRecord{};  // never sent
  const MetricSet m = compute_metrics(run);
  EXPECT_EQ(m.count("completed") + m.count("failed") + m.count("unsent"), m.planned);
  EXPECT_EQ(m.count("unsent"), 1u);
  EXPECT_EQ(m.sent, 1199u);
}

TEST(Table, EveryRowIsComplete) {
  for (const MetricDescriptor& row : metric_table()) {
    EXPECT_FALSE(row.title.empty() || row.definition.empty() || row.formula.empty()) << row.key;
    EXPECT_EQ(find_metric(row.key), &row) << "keys are unique";
  }
  EXPECT_EQ(metric_of_key("p99.9_ttft_ms"), find_metric("ttft"));
  EXPECT_EQ(metric_of_key("median_e2el_ms"), find_metric("e2el"));
  EXPECT_EQ(metric_of_key("e2e"), find_metric("e2el"));
  EXPECT_EQ(metric_of_key("pxx_ttft_ms"), nullptr);
  EXPECT_EQ(metric_of_key("nonsense"), nullptr);
}

TEST(Runs, MeanAndSpread) {
  std::vector<MetricSet> runs;
  for (const TimeNs ttft : {100 * kMs, 200 * kMs, 300 * kMs})
    runs.push_back(compute_metrics(run_of({answered_request(0, 0, ttft, kMs, 2)}, 1)));
  const auto spread = spread_of(runs);
  const Spread& ttft = spread.at("mean_ttft");
  EXPECT_EQ(ttft.n, 3u);
  EXPECT_DOUBLE_EQ(ttft.mean, 200);
  EXPECT_NEAR(ttft.std, 81.649658, 1e-6);
  EXPECT_DOUBLE_EQ(ttft.min, 100);
  EXPECT_DOUBLE_EQ(ttft.max, 300);
  EXPECT_NEAR(*ttft.cv, 0.40824829, 1e-8);
  EXPECT_DOUBLE_EQ(spread.at("request_throughput").std, 0);
  EXPECT_FALSE(spread.contains("request_goodput"));
  EXPECT_FALSE(spread.at("failed").cv.has_value());
}

}  // namespace
}  // namespace tokenstone::record
