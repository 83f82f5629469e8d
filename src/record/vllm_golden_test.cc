// vLLM's own file of a run on eight H100s: its statistics recomputed from its arrays.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "record/metrics.h"
#include "support/shared_data.h"

namespace tokenstone::record {
namespace {

using Json = nlohmann::json;

RunResult run_of(const Json& file) {
  RunResult run;
  run.plan.request_rate = file.at("request_rate").get<double>();
  run.window_end = from_seconds(file.at("duration").get<double>());
  for (std::size_t i = 0; i < file.at("ttfts").size(); ++i) {
    RequestRecord r;
    r.index = static_cast<std::uint32_t>(i);
    r.intended = r.sent = 0;
    double t = file.at("ttfts")[i].get<double>();
    r.events.push_back({from_seconds(t), from_seconds(t), -1, TokenKind::text, false});
    for (const Json& gap : file.at("itls")[i]) {
      t += gap.get<double>();
      r.events.push_back({from_seconds(t), from_seconds(t), -1, TokenKind::text, false});
    }
    r.first_token = r.events.front().arrived;
    r.last_token = r.finished = r.events.back().arrived;
    r.prompt_len = file.at("input_lens")[i].get<std::int64_t>();
    r.output_len = file.at("output_lens")[i].get<std::int64_t>();
    run.requests.push_back(std::move(r));
  }
  return run;
}

/// The sample as vLLM has it: seconds in double, scaled at the end.
void expect_exact(const Json& file, const std::string& metric, const stats::Sample& seconds) {
  const auto key = [&](const std::string& statistic) {
    return file.at(statistic + "_" + metric + "_ms").get<double>();
  };
  EXPECT_NEAR(seconds.mean() * 1000 / key("mean"), 1, 1e-14) << metric;
  EXPECT_DOUBLE_EQ(seconds.quantile(0.5).value * 1000, key("median")) << metric;
  EXPECT_DOUBLE_EQ(seconds.quantile(0.99).value * 1000, key("p99")) << metric;
  EXPECT_NEAR(seconds.population_std() * 1000 / key("std"), 1, 1e-13) << metric;
}

TEST(VllmGolden, StatisticsToTheLastDigit) {
  const auto path = tokenstone::testing::shared_file("data/results/vllm_serving_8xH100_llama405b_16qps.json");
  // The file is reference material beside the project and not part of it.
  if (!path) GTEST_SKIP() << "no vLLM result file beside the project";
  const Json file = Json::parse(tokenstone::testing::read_file(*path));
  stats::Sample ttft, itl;
  for (const Json& t : file.at("ttfts")) ttft.add(t.get<double>());
  for (const Json& gaps : file.at("itls"))
    for (const Json& gap : gaps) itl.add(gap.get<double>());
  ASSERT_EQ(ttft.count(), 1000u);
  ASSERT_EQ(itl.count(), 120'017u);
  expect_exact(file, "ttft", ttft);
  expect_exact(file, "itl", itl);

  const MetricSet m = compute_metrics(run_of(file));  // in ns: the same to a nanosecond
  for (const char* metric : {"ttft", "itl"}) {
    const std::string suffix = std::string("_") + metric + "_ms";
    EXPECT_NEAR(m.sample(metric).mean(), file.at("mean" + suffix).get<double>(), 2e-6);
    EXPECT_NEAR(m.sample(metric).quantile(0.99).value, file.at("p99" + suffix).get<double>(), 2e-6);
  }
  EXPECT_DOUBLE_EQ(*m.value("total_output_tokens"), file.at("total_output_tokens").get<double>());
  EXPECT_NEAR(*m.value("request_throughput"), file.at("request_throughput").get<double>(), 1e-7);
  EXPECT_NEAR(*m.value("output_throughput"), file.at("output_throughput").get<double>(), 1e-5);
  EXPECT_NEAR(*m.value("total_token_throughput"), file.at("total_token_throughput").get<double>(), 1e-4);
}

}  // namespace
}  // namespace tokenstone::record
