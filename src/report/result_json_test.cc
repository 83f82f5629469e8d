#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "record/request_csv.h"
#include "report/result_json.h"
#include "report/summary.h"
#include "support/golden.h"
#include "support/sample_run.h"
#include "support/shared_data.h"

namespace tokenstone::report {
namespace {

using Json = nlohmann::json;
using record::RunResult;
using tokenstone::testing::answered_request;
using tokenstone::testing::failed_request;
using tokenstone::testing::read_file;
using tokenstone::testing::sample_run;
using tokenstone::testing::temporary_folder;

std::string result_of(const RunResult& run) {
  const record::MetricSet metrics = record::compute_metrics(run);
  return result_json(run, metrics, judge::judge(run, metrics));
}

/// nlohmann's parser is strict: bare NaN, Infinity and trailing commas are errors.
Json parsed(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

TEST(ResultJson, Golden) { tokenstone::testing::expect_golden("result.json", result_of(sample_run())); }

TEST(ResultJson, HasVllmsKeys) {
  const Json json = parsed(result_of(sample_run()));
  for (const char* key : {"date",
                          "endpoint_type",
                          "backend",
                          "label",
                          "model_id",
                          "tokenizer_id",
                          "num_prompts",
                          "commit",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "rtfx"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const std::string metric : {"ttft", "tpot", "itl", "e2el"})
    for (const std::string statistic : {"mean", "median", "std", "p50", "p90", "p99"})
      EXPECT_TRUE(json[statistic + "_" + metric + "_ms"].is_number()) << metric;
  EXPECT_TRUE(json.contains("p99.9_ttft_ms")) << "a fraction keeps its point";
  EXPECT_FALSE(json.contains("p99.9_e2el_ms")) << "not in --percentile-metrics";
  EXPECT_EQ(json["completed"].get<int>() + json["failed"].get<int>() + json["unsent"].get<int>(),
            json["num_prompts"].get<int>());
}

TEST(ResultJson, IsStrictWhenNothingWasMeasured) {  // REP-01, REP-03, FAIL-01, FAIL-04
  RunResult failed = sample_run();
  for (auto& r : failed.requests) r = failed_request(r.index, r.sent, record::ErrorClass::refused, 0);
  RunResult one_token = sample_run();
  for (auto& r : one_token.requests) r = answered_request(r.index, r.sent, kMillisecond, 0, 1);
  RunResult infinite = sample_run();
  infinite.plan.request_rate = HUGE_VAL;
  for (const RunResult& run : {failed, one_token, infinite, RunResult{}}) {
    for (const std::string& text : {result_of(run), vllm_result_json(run, record::compute_metrics(run))}) {
      const Json json = parsed(text);
      EXPECT_EQ(text.find(":NaN"), std::string::npos);
      EXPECT_TRUE(json.is_object());
    }
  }
  EXPECT_TRUE(parsed(result_of(failed))["p99_ttft_ms"].is_null());
  EXPECT_TRUE(parsed(result_of(failed))["mean_e2el_ms"].is_null());
  EXPECT_EQ(parsed(result_of(failed))["completed"], 0);
  EXPECT_TRUE(parsed(result_of(one_token))["mean_tpot_ms"].is_null());
  EXPECT_EQ(parsed(result_of(infinite))["request_rate"], "inf");
  EXPECT_TRUE(parsed(result_of(RunResult{}))["request_throughput"].is_null());
}

TEST(ResultJson, MarksWhatTheSampleCannotCarry) {
  const Json ttft = parsed(result_of(sample_run()))["metrics"]["ttft"];
  EXPECT_EQ(ttft["n"], 1197);
  EXPECT_EQ(ttft["unit"], "ms");
  EXPECT_TRUE(ttft["quantiles"]["p99"]["reliable"].get<bool>());
  EXPECT_FALSE(ttft["quantiles"]["p99.9"]["reliable"].get<bool>());
  EXPECT_EQ(ttft["quantiles"]["p99.9"]["needed"], 10'000);
  EXPECT_TRUE(ttft["quantiles"]["p99.9"]["value"].is_number()) << "one sample lies beyond";
  RunResult few = sample_run();
  few.requests.resize(50);
  EXPECT_TRUE(parsed(result_of(few))["metrics"]["ttft"]["quantiles"]["p99"]["value"].is_null()) << "none lies beyond";
}

TEST(ResultJson, ChecksHaveTheCommonForm) {
  RunResult run = sample_run();
  run.plan.slo[0].limit_ms = 10;
  const Json checks = parsed(result_of(run))["checks"];
  ASSERT_EQ(checks.size(), 2u);
  for (const Json& check : checks)
    for (const char* key : {"id", "value", "lo", "hi", "n", "unit", "op", "target", "pass", "skipped", "command"})
      EXPECT_TRUE(check.contains(key)) << key;
  EXPECT_EQ(checks[0]["id"], "run.failed_share");
  EXPECT_TRUE(checks[0]["pass"].get<bool>());
  EXPECT_EQ(checks[1]["id"], "slo.ttft.p99");
  EXPECT_FALSE(checks[1]["pass"].get<bool>());
}

TEST(ResultJson, DiffersOnlyInDateAndEnvironment) {
  RunResult one = sample_run(), two = sample_run();
  one.run_dir = "runs/0001";
  two.run_dir = "elsewhere";
  two.plan.argv.insert(two.plan.argv.end(), {"--run-dir", "elsewhere"});
  two.plan.date = "20300101-000000";
  two.plan.environment["cpu"] = "another";
  Json a = parsed(result_of(one)), b = parsed(result_of(two));
  for (Json* json : {&a, &b})
    for (const char* key : {"date", "environment"}) json->erase(key);
  EXPECT_EQ(a.dump(), b.dump());
}

TEST(ResultJson, AgreesWithConsoleAndCsv) {
  const RunResult run = sample_run();
  const record::MetricSet metrics = record::compute_metrics(run);
  const Json json = parsed(result_of(run));
  const std::string console = summary(run, metrics, judge::judge(run, metrics));
  for (const auto& [key, label] : {std::pair{"p50_ttft_ms", "TTFT           ms"},
                                   {"p50_tpot_ms", "TPOT           ms"},
                                   {"p50_e2el_ms", "E2E            ms"}}) {
    const std::size_t row = console.find(label);
    ASSERT_NE(row, std::string::npos);
    EXPECT_NE(console.substr(row, 30).find(format_figure(json[key].get<double>())), std::string::npos) << key;
  }
  EXPECT_NE(console.find(format_figure(json["output_throughput"].get<double>()) + " output tok/s"), std::string::npos);
  std::string csv;
  for (const std::string_view column : record::request_columns()) csv += (csv.empty() ? "" : ",") + std::string(column);
  csv += "\n";
  for (const auto& r : run.requests) csv += record::request_csv_line(r);
  RunResult from_csv = run;
  from_csv.requests = *record::parse_requests_csv(csv, "requests.csv");
  const record::MetricSet again = record::compute_metrics(from_csv);
  EXPECT_EQ(again.sample("ttft").mean(), metrics.sample("ttft").mean());
  EXPECT_EQ(again.sample("tpot").quantile(0.99).value, metrics.sample("tpot").quantile(0.99).value);
  EXPECT_EQ(again.value("output_throughput"), metrics.value("output_throughput"));
}

TEST(VllmResult, ArraysStandInPlannedOrder) {
  RunResult run = sample_run();
  run.requests.resize(3);
  run.requests[1] = failed_request(1, kSecond, record::ErrorClass::truncated_stream, 200);
  run.requests[1].text = "half an ans";
  run.requests[1].events = {{kSecond + 7 * kMillisecond, 0, 1, record::TokenKind::text, false}};
  run.requests[1].first_token = run.requests[1].last_token = kSecond + 7 * kMillisecond;
  run.requests[2] = record::RequestRecord{};
  run.requests[2].planned_prompt_len = 9;
  const record::MetricSet metrics = record::compute_metrics(run);
  EXPECT_FALSE(parsed(vllm_result_json(run, metrics)).contains("ttfts")) << "only with --save-detailed";
  run.plan.save_detailed = true;
  const std::string text = vllm_result_json(run, metrics);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "one line, so that files can be appended to";
  const Json json = parsed(text);
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors",
                          "error_classes", "latencies", "queue_times"})
    EXPECT_EQ(json[key].size(), 3u) << key;
  EXPECT_EQ(json["input_lens"], Json::array({32, 40, 9}));
  EXPECT_EQ(json["output_lens"], Json::array({10, 0, 0}));
  EXPECT_DOUBLE_EQ(json["ttfts"][0].get<double>(), 0.02);
  EXPECT_EQ(json["itls"][0].size(), 9u) << "the first token is not in itls";
  EXPECT_DOUBLE_EQ(json["ttfts"][1].get<double>(), 0.007) << "what was received before the failure is kept";
  EXPECT_EQ(json["generated_texts"][1], "half an ans");
  EXPECT_EQ(json["error_classes"], Json::array({"", "truncated_stream", ""}));
  EXPECT_TRUE(json["ttfts"][2].is_null());
  EXPECT_TRUE(json["start_times"][2].is_null());
  double gaps = 0;
  for (const Json& gap : json["itls"][0]) gaps += gap.get<double>();
  EXPECT_NEAR(json["latencies"][0].get<double>(), json["ttfts"][0].get<double>() + gaps, 1e-12);
}

TEST(VllmResult, BytesThatAreNoTextStayReadable) {
  RunResult run = sample_run();
  run.plan.save_detailed = true;
  run.requests[0].text = "a\xFF\xC3";
  EXPECT_TRUE(parsed(vllm_result_json(run, record::compute_metrics(run))).is_object());
}

TEST(VllmResult, FileName) {
  record::RunPlan plan;
  plan.backend = "openai";
  plan.model_id = "meta-llama/Llama-3.1-8B";
  plan.date = "20250102-030405";
  plan.request_rate = 16;
  EXPECT_EQ(vllm_file_name(plan), "openai-16.0qps-Llama-3.1-8B-20250102-030405.json");
  plan.request_rate = HUGE_VAL;
  plan.max_concurrency = 32;
  plan.label = "mine";
  EXPECT_EQ(vllm_file_name(plan), "mine-infqps-concurrency32-Llama-3.1-8B-20250102-030405.json");
  plan.model_id = "tiny-15m";
  plan.request_rate = 0.5;
  plan.max_concurrency.reset();
  EXPECT_EQ(vllm_file_name(plan), "mine-0.5qps-tiny-15m-20250102-030405.json");
}

TEST(VllmResult, WritesAndAppends) {
  const RunResult run = sample_run();
  const record::MetricSet metrics = record::compute_metrics(run);
  const SaveOptions options{
      .folder = (temporary_folder() / "new" / "folder").string(), .file_name = "all.json", .append = true};
  ASSERT_TRUE(check_result_path(run.plan, options).has_value());
  EXPECT_FALSE(std::filesystem::exists(options.folder)) << "a check leaves nothing behind";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(save_vllm_result(run, metrics, options).has_value());
  const std::string text = read_file(vllm_path(run.plan, options));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  ASSERT_TRUE(save_vllm_result(run, metrics, {.folder = options.folder, .file_name = "all.json"}).has_value());
  EXPECT_EQ(read_file(vllm_path(run.plan, options)), vllm_result_json(run, metrics))
      << "without --append-result it is replaced";
}

TEST(VllmResult, AFolderThatIsAFileIsRefusedBeforeTheRun) {
  const std::filesystem::path folder = temporary_folder();
  std::ofstream(folder / "file") << "x";
  const Status status = check_result_path(sample_run().plan, {.folder = (folder / "file").string()});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
}

TEST(Spread, AsJsonAndTable) {
  std::vector<record::MetricSet> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(record::compute_metrics(sample_run()));
  const auto spread = record::spread_of(runs);
  const Json json = parsed(spread_json(spread));
  EXPECT_EQ(json["p99_ttft"]["unit"], "ms");
  EXPECT_EQ(json["p99_ttft"]["n"], 3);
  EXPECT_DOUBLE_EQ(json["p99_ttft"]["cv"].get<double>(), 0);
  EXPECT_NE(spread_table(spread).find("p99_ttft ms"), std::string::npos);
}

}  // namespace
}  // namespace tokenstone::report
