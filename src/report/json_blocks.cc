#include "report/json_blocks.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::report {
namespace {

using record::MetricSet;
using record::RunPlan;
using record::RunResult;

void add_header(Json& j, const RunPlan& plan) {
  j["date"] = plan.date;
  j["endpoint_type"] = plan.backend;
  j["backend"] = plan.backend;
  j["label"] = plan.label.empty() ? Json(nullptr) : Json(plan.label);
  j["model_id"] = plan.model_id;
  j["tokenizer_id"] = plan.tokenizer_id;
  j["num_prompts"] = plan.num_prompts;
  for (const auto& [key, value] : plan.metadata)
    if (!j.contains(key)) j[to_valid_utf8(key)] = value;
  j["request_rate"] = std::isinf(plan.request_rate) || plan.request_rate == 0 ? Json("inf") : Json(plan.request_rate);
  j["burstiness"] = number(plan.burstiness);
  j["max_concurrency"] = plan.max_concurrency ? Json(*plan.max_concurrency) : Json(nullptr);
}

void add_rates(Json& j, const MetricSet& m) {
  j["duration"] = number(m.value("duration"));
  j["completed"] = whole(m.value("completed"));
  j["failed"] = whole(m.value("failed"));
  j["total_input_tokens"] = whole(m.value("total_input_tokens"));
  j["total_output_tokens"] = whole(m.value("total_output_tokens"));
  for (const char* key : {"request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
                          "max_output_tokens_per_s"})
    j[key] = number(m.value(key));
  j["max_concurrent_requests"] = whole(m.value("max_concurrent_requests"));
  j["rtfx"] = 0.0;  // vLLM's audio figure; there is no audio here
}

/// Percentiles that are always there, and those of --metric-percentiles for the metrics of --percentile-metrics.
std::vector<double> percents_of(const RunPlan& plan, const std::string& metric) {
  std::vector<double> percents = {50, 90, 99};
  const auto& names = plan.percentile_metrics;
  if (std::find(names.begin(), names.end(), metric) != names.end())
    percents.insert(percents.end(), plan.metric_percentiles.begin(), plan.metric_percentiles.end());
  std::sort(percents.begin(), percents.end());
  percents.erase(std::unique(percents.begin(), percents.end()), percents.end());
  return percents;
}

void add_latency(Json& j, const RunPlan& plan, const std::string& metric, const stats::Sample& sample) {
  const bool any = !sample.empty();
  const auto put = [&](const std::string& statistic, double value) {
    j[fmt::format("{}_{}_ms", statistic, metric)] = any ? number(value) : Json(nullptr);
  };
  put("mean", sample.mean());
  put("median", any ? sample.quantile(0.5).value : 0);
  put("std", sample.population_std());
  for (const double percent : percents_of(plan, metric))
    put(fmt::format("p{}", percent), any ? sample.quantile(percent / 100).value : 0);
}

}  // namespace

Json vllm_scalars(const RunResult& run, const MetricSet& metrics) {
  Json j;
  add_header(j, run.plan);
  add_rates(j, metrics);
  for (const char* metric : {"ttft", "tpot", "itl", "e2el"}) add_latency(j, run.plan, metric, metrics.sample(metric));
  return j;
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

}  // namespace tokenstone::report
