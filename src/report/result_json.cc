#include "report/result_json.h"

#include <fmt/format.h>

#include "base/text.h"
#include "judge/limits.h"
#include "record/plan_json.h"
#include "report/json_blocks.h"

namespace tokenstone::report {
namespace {

using judge::ObjectiveResult;
using judge::Verdict;
using record::MetricDescriptor;
using record::MetricKind;
using record::MetricSet;
using record::RunResult;

/// Value null where no sample lies beyond; `reliable` false, with the count needed, where fewer than ten do.
Json quantile_json(const stats::Sample& sample, double q) {
  const stats::Quantile quantile = sample.quantile(q);
  return {{"value", quantile.available ? number(quantile.value) : Json(nullptr)},
          {"reliable", quantile.reliable},
          {"beyond", quantile.beyond},
          {"needed", quantile.needed}};
}

Json distribution_json(const MetricDescriptor& metric, const stats::Sample& sample, const record::RunPlan& plan) {
  Json j = {
      {"title", metric.title}, {"unit", metric.unit}, {"better", to_string(metric.better)}, {"n", sample.count()}};
  const bool any = !sample.empty();
  j["mean"] = any ? number(sample.mean()) : Json(nullptr);
  j["std"] = any ? number(sample.population_std()) : Json(nullptr);
  j["min"] = any ? number(sample.min()) : Json(nullptr);
  j["max"] = any ? number(sample.max()) : Json(nullptr);
  std::vector<double> quantiles = {0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
  for (const double percent : plan.metric_percentiles) quantiles.push_back(percent / 100);
  std::sort(quantiles.begin(), quantiles.end());
  Json list = Json::object();
  for (const double q : quantiles) list[judge::quantile_name(q)] = quantile_json(sample, q);
  j["quantiles"] = list;
  return j;
}

/// How many observations stand behind a number of the run as a whole.
std::uint64_t scalar_n(const MetricDescriptor& metric, const RunResult& run, const MetricSet& metrics) {
  if (metric.key.starts_with("engine_")) return run.steps.size();
  if (metric.key == "zero_gap_share") return metrics.sample("itl").count();
  return metrics.planned;
}

Json metrics_json(const RunResult& run, const MetricSet& metrics) {
  Json all = Json::object();
  for (const MetricDescriptor& metric : record::metric_table()) {
    const std::string key(metric.key);
    if (metric.kind == MetricKind::distribution) {
      all[key] = distribution_json(metric, metrics.sample(key), run.plan);
      continue;
    }
    all[key] = {{"title", metric.title},
                {"unit", metric.unit},
                {"better", to_string(metric.better)},
                {"n", scalar_n(metric, run, metrics)},
                {"value", number(metrics.value(key))}};
  }
  return all;
}

std::string plain_command(const RunResult& run) {
  return "tokenstone " + join(record::without_output_flags(run.plan.argv), " ");
}

Json check_json(std::string id, std::optional<double> value, std::uint64_t n, std::string unit, double target,
                bool pass, const RunResult& run) {
  return {{"id", std::move(id)},
          {"value", number(value)},
          {"lo", nullptr},
          {"hi", nullptr},
          {"n", n},
          {"unit", std::move(unit)},
          {"op", "<="},
          {"target", target},
          {"pass", pass},
          {"skipped", nullptr},
          {"command", plain_command(run)}};
}

Json checks_json(const RunResult& run, const MetricSet& metrics, const Verdict& verdict) {
  Json checks = Json::array();
  const std::uint64_t ended = metrics.count("completed") + metrics.count("failed");
  const std::optional<double> share = ended > 0 ? std::optional(verdict.failed_share) : std::nullopt;
  checks.push_back(
      check_json("run.failed_share", share, ended, "share", judge::kFailedShareLimit, verdict.reasons.empty(), run));
  for (const ObjectiveResult& o : verdict.objectives)
    checks.push_back(check_json(fmt::format("slo.{}.{}", o.limit.metric, judge::quantile_name(*o.limit.quantile)),
                                o.value_ms, o.n, "ms", o.limit.limit_ms, o.pass, run));
  return checks;
}

Json objectives_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const ObjectiveResult& o : verdict.objectives)
    list.push_back({{"metric", o.limit.metric},
                    {"quantile", judge::quantile_name(*o.limit.quantile)},
                    {"value_ms", number(o.value_ms)},
                    {"limit_ms", o.limit.limit_ms},
                    {"n", o.n},
                    {"needed", o.needed},
                    {"reliable", o.reliable},
                    {"pass", o.pass}});
  return list;
}

Json findings_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const judge::Finding& f : verdict.findings)
    list.push_back({{"code", f.code}, {"text", f.text}, {"evidence", f.evidence}, {"advice", f.advice}});
  return list;
}

Json errors_json(const MetricSet& metrics) {
  Json list = Json::array();
  for (const record::ErrorCount& e : metrics.errors)
    list.push_back({{"error_class", to_string(e.error_class)},
                    {"http_status", e.http_status > 0 ? Json(e.http_status) : Json(nullptr)},
                    {"count", e.count},
                    {"first_s", e.first == kUnknownTime ? Json(nullptr) : Json(to_seconds(e.first))},
                    {"last_s", e.last == kUnknownTime ? Json(nullptr) : Json(to_seconds(e.last))},
                    {"sample", e.sample}});
  return list;
}

Json audit_json(const RunResult& run, const MetricSet& metrics) {
  const record::ClientAudit& a = run.audit;
  return {{"send_lag_n", metrics.sample("send_lag").count()},
          {"loop_stall_max_ms", to_millis(a.loop_stall_max)},
          {"cpu_share", a.cpu_share >= 0 ? number(a.cpu_share) : Json(nullptr)},
          {"kernel_stamps", a.kernel_stamps},
          {"stamp_uncertainty_ns", a.stamp_uncertainty == kUnknownTime ? Json(nullptr) : Json(a.stamp_uncertainty)},
          {"waited_for_slot", a.waited_for_slot},
          {"slot_wait_max_ms", to_millis(a.slot_wait_max)}};
}

Json sources_json(const MetricSet& metrics) {
  Json sources = Json::object();
  for (const auto& [source, n] : metrics.length_sources)
    sources[source == record::LengthSource::unknown ? "unknown" : std::string(to_string(source))] = n;
  return sources;
}

Json phases_json(const RunResult& run) {
  Json phases = Json::array();
  for (const auto& [name, length] : run.phases) phases.push_back({{"name", name}, {"length_s", to_seconds(length)}});
  return phases;
}

/// The plan without what stands beside it.
Json plan_json(const RunResult& run) {
  Json plan = Json::parse(record::plan_to_json(run.plan));
  for (const char* key : {"environment", "date", "deviations", "notes"}) plan.erase(key);
  return plan;
}

}  // namespace

std::string result_json(const RunResult& run, const MetricSet& metrics, const Verdict& verdict) {
  Json j;
  j["schema_version"] = kResultVersion;
  j["tool"] = "tokenstone";
  j["tool_version"] = run.plan.tool_version;
  j.update(vllm_scalars(run, metrics));
  j["verdict"] = {{"word", to_string(verdict.word)}, {"exit_code", verdict.exit_code}, {"reasons", verdict.reasons}};
  j["objectives"] = objectives_json(verdict);
  j["findings"] = findings_json(verdict);
  j["checks"] = checks_json(run, metrics, verdict);
  j["planned"] = metrics.planned;
  j["sent"] = metrics.sent;
  j["unsent"] = whole(metrics.value("unsent"));
  j["window"] = {{"start_s", to_seconds(run.window_start)},
                 {"end_s", to_seconds(run.window_end)},
                 {"kind", run.plan.duration ? "duration" : "count"}};
  j["phases"] = phases_json(run);
  j["partial"] = run.interrupted;
  j["errors_by_class"] = errors_json(metrics);
  j["output_len_sources"] = sources_json(metrics);
  j["metrics"] = metrics_json(run, metrics);
  j["client"] = audit_json(run, metrics);
  j["engine_blocks"] = run.engine_blocks;
  j["engine_block_size"] = run.engine_block_size;
  j["deviations"] = run.plan.deviations;
  j["notes"] = run.plan.notes;
  j["plan"] = plan_json(run);
  j["environment"] = run.plan.environment;
  return dump(j, 2) + "\n";
}

}  // namespace tokenstone::report
