#include "record/plan_json.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace tokenstone::record {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isinf(value)) return "inf";
  return value;
}

double to_number(const Json& json) {
  if (json.is_string()) return std::numeric_limits<double>::infinity();
  return json.get<double>();
}

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pairs(const std::vector<std::pair<std::string, std::string>>& list) {
  Json out = Json::array();
  for (const auto& [key, value] : list) out.push_back({to_valid_utf8(key), to_valid_utf8(value)});
  return out;
}

Json limits(const std::vector<Limit>& list) {
  Json out = Json::array();
  for (const Limit& l : list)
    out.push_back(
        {{"metric", l.metric}, {"quantile", optional(l.quantile)}, {"limit_ms", l.limit_ms}, {"text", l.text}});
  return out;
}

std::vector<Limit> to_limits(const Json& json) {
  std::vector<Limit> list;
  for (const Json& item : json) {
    Limit l;
    item.at("metric").get_to(l.metric);
    if (!item.at("quantile").is_null()) l.quantile = item.at("quantile").get<double>();
    item.at("limit_ms").get_to(l.limit_ms);
    item.at("text").get_to(l.text);
    list.push_back(std::move(l));
  }
  return list;
}

Json dataset(const DatasetInfo& d) {
  return {{"name", d.name},
          {"path", d.path},
          {"law", d.law},
          {"rows", d.rows},
          {"used", d.used},
          {"dropped", d.dropped},
          {"oversampled", d.oversampled},
          {"notes", d.notes}};
}

DatasetInfo to_dataset(const Json& json) {
  DatasetInfo d;
  json.at("name").get_to(d.name);
  json.at("path").get_to(d.path);
  json.at("law").get_to(d.law);
  json.at("rows").get_to(d.rows);
  json.at("used").get_to(d.used);
  d.dropped = json.at("dropped").get<std::map<std::string, std::uint64_t>>();
  json.at("oversampled").get_to(d.oversampled);
  json.at("notes").get_to(d.notes);
  return d;
}

Json stages(const std::vector<std::pair<double, TimeNs>>& list) {
  Json out = Json::array();
  for (const auto& [rate, length] : list) out.push_back({{"rate", number(rate)}, {"length_ns", length}});
  return out;
}

Json to_json(const RunPlan& plan) {
  std::map<std::string, std::string> flags = plan.flags;
  std::erase_if(flags, [](const auto& flag) { return is_output_flag(flag.first); });
  Json j;
  j["version"] = kPlanVersion;
  j["argv"] = without_output_flags(plan.argv);
  j["flags"] = flags;
  j["plan_hash"] = plan.plan_hash;
  j["seed"] = plan.seed;
  j["backend"] = plan.backend;
  j["endpoint"] = plan.endpoint;
  j["target_kind"] = plan.target_kind;
  j["target_address"] = plan.target_address;
  j["model_id"] = plan.model_id;
  j["tokenizer_id"] = plan.tokenizer_id;
  j["label"] = plan.label;
  j["server_version"] = plan.server_version;
  j["metadata"] = pairs(plan.metadata);
  j["num_prompts"] = plan.num_prompts;
  j["request_rate"] = number(plan.request_rate);
  j["burstiness"] = plan.burstiness;
  j["max_concurrency"] = optional(plan.max_concurrency);
  j["duration_ns"] = optional(plan.duration);
  j["stages"] = stages(plan.stages);
  j["num_warmups"] = plan.num_warmups;
  j["ignore_eos"] = plan.ignore_eos;
  j["dataset"] = dataset(plan.dataset);
  j["goodput"] = limits(plan.goodput);
  j["slo"] = limits(plan.slo);
  j["percentile_metrics"] = plan.percentile_metrics;
  j["metric_percentiles"] = plan.metric_percentiles;
  j["save_detailed"] = plan.save_detailed;
  j["virtual_time"] = plan.virtual_time;
  j["deviations"] = plan.deviations;
  j["notes"] = plan.notes;
  j["environment"] = plan.environment;
  j["date"] = plan.date;
  j["tool_version"] = plan.tool_version;
  return j;
}

void read_schedule(const Json& j, RunPlan& plan) {
  j.at("num_prompts").get_to(plan.num_prompts);
  plan.request_rate = to_number(j.at("request_rate"));
  j.at("burstiness").get_to(plan.burstiness);
  if (!j.at("max_concurrency").is_null()) plan.max_concurrency = j.at("max_concurrency").get<std::uint32_t>();
  if (!j.at("duration_ns").is_null()) plan.duration = j.at("duration_ns").get<TimeNs>();
  for (const Json& stage : j.at("stages"))
    plan.stages.emplace_back(to_number(stage.at("rate")), stage.at("length_ns").get<TimeNs>());
  j.at("num_warmups").get_to(plan.num_warmups);
  j.at("ignore_eos").get_to(plan.ignore_eos);
  plan.dataset = to_dataset(j.at("dataset"));
  plan.goodput = to_limits(j.at("goodput"));
  plan.slo = to_limits(j.at("slo"));
}

RunPlan from_json(const Json& j) {
  RunPlan plan;
  j.at("argv").get_to(plan.argv);
  plan.flags = j.at("flags").get<std::map<std::string, std::string>>();
  j.at("plan_hash").get_to(plan.plan_hash);
  j.at("seed").get_to(plan.seed);
  j.at("backend").get_to(plan.backend);
  j.at("endpoint").get_to(plan.endpoint);
  j.at("target_kind").get_to(plan.target_kind);
  j.at("target_address").get_to(plan.target_address);
  j.at("model_id").get_to(plan.model_id);
  j.at("tokenizer_id").get_to(plan.tokenizer_id);
  j.at("label").get_to(plan.label);
  j.at("server_version").get_to(plan.server_version);
  for (const Json& item : j.at("metadata"))
    plan.metadata.emplace_back(item.at(0).get<std::string>(), item.at(1).get<std::string>());
  read_schedule(j, plan);
  j.at("percentile_metrics").get_to(plan.percentile_metrics);
  j.at("metric_percentiles").get_to(plan.metric_percentiles);
  j.at("save_detailed").get_to(plan.save_detailed);
  j.at("virtual_time").get_to(plan.virtual_time);
  j.at("deviations").get_to(plan.deviations);
  j.at("notes").get_to(plan.notes);
  plan.environment = j.at("environment").get<std::map<std::string, std::string>>();
  j.at("date").get_to(plan.date);
  j.at("tool_version").get_to(plan.tool_version);
  return plan;
}

std::string plain_name(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string plain(name.substr(0, name.find('=')));
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

}  // namespace

bool is_output_flag(std::string_view name) {
  static constexpr std::string_view kNames[] = {"run-dir", "no-run-dir", "result-dir", "result-filename", "json"};
  return std::find(std::begin(kNames), std::end(kNames), plain_name(name)) != std::end(kNames);
}

std::vector<std::string> without_output_flags(const std::vector<std::string>& argv) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (!argv[i].starts_with("--") || !is_output_flag(argv[i])) {
      kept.push_back(argv[i]);
      continue;
    }
    const bool takes_next = plain_name(argv[i]) != "no-run-dir" && argv[i].find('=') == std::string::npos;
    if (takes_next) ++i;
  }
  return kept;
}

std::string plan_to_json(const RunPlan& plan) {
  return to_json(plan).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunPlan> plan_from_json(std::string_view text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    const int version = json.at("version").get<int>();
    if (version != kPlanVersion)
      return usage_error(
          fmt::format("{}: expected a plan of version {}, found version {}", path, kPlanVersion, version));
    return from_json(json);
  } catch (const Json::exception& error) {
    return usage_error(fmt::format("{}: expected a run's plan as tokenstone writes it: {}", path, error.what()));
  }
}

}  // namespace tokenstone::record
