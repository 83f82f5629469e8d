// vLLM's own result file: contents, name, place.
#include <filesystem>
#include <fstream>

#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "record/append_file.h"
#include "report/json_blocks.h"
#include "report/result_json.h"

namespace tokenstone::report {
namespace {

namespace fs = std::filesystem;
using record::MetricSet;
using record::RequestRecord;
using record::RunPlan;
using record::RunResult;

Json seconds_between(TimeNs from, TimeNs to) {
  if (from == kUnknownTime || to == kUnknownTime) return nullptr;
  return to_seconds(to - from);
}

Json gaps_of(const RequestRecord& r) {
  Json gaps = Json::array();
  for (std::size_t i = 1; i < r.events.size(); ++i)
    gaps.push_back(to_seconds(r.events[i].arrived - r.events[i - 1].arrived));
  return gaps;
}

void add_arrays(Json& j, const RunResult& run) {
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors",
                          "error_classes", "latencies", "queue_times"})
    j[key] = Json::array();
  for (const RequestRecord& r : run.requests) {
    j["input_lens"].push_back(r.prompt_len >= 0           ? Json(r.prompt_len)
                              : r.planned_prompt_len >= 0 ? Json(r.planned_prompt_len)
                                                          : Json(nullptr));
    j["output_lens"].push_back(r.succeeded() ? std::max<std::int64_t>(r.output_len, 0)
                                             : 0);  // vLLM: 0 for a failed one
    j["ttfts"].push_back(seconds_between(r.sent, r.first_token));
    j["itls"].push_back(gaps_of(r));
    j["start_times"].push_back(r.was_sent() ? Json(to_seconds(r.sent)) : Json(nullptr));
    j["generated_texts"].push_back(r.text);
    j["errors"].push_back(r.error);
    j["error_classes"].push_back(to_string(r.error_class));
    j["latencies"].push_back(seconds_between(r.sent, r.last_token));
    j["queue_times"].push_back(seconds_between(r.intended, r.sent));
  }
}

/// Python's str of a float: 16.0, 0.5; inf.
std::string python_float(double value) {
  if (std::isinf(value)) return "inf";
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string stages_rate(const RunPlan& plan) {
  return fmt::format("stages-{}qps-{}qps", python_float(plan.stages.front().first),
                     python_float(plan.stages.back().first));
}

}  // namespace

std::string vllm_result_json(const RunResult& run, const MetricSet& metrics) {
  Json j = vllm_scalars(run, metrics);
  j["unsent"] = whole(metrics.value("unsent"));
  if (run.plan.save_detailed) add_arrays(j, run);
  return dump(j, -1) + "\n";
}

std::string vllm_file_name(const RunPlan& plan) {
  const std::string subject = plan.label.empty() ? plan.backend : plan.label;
  const std::string model = plan.model_id.substr(plan.model_id.find_last_of('/') + 1);  // npos + 1 is 0: the whole name
  const std::string rate =
      plan.stages.empty()
          ? python_float(plan.request_rate == 0 ? std::numeric_limits<double>::infinity() : plan.request_rate) + "qps"
          : stages_rate(plan);
  const std::string cap = plan.max_concurrency ? fmt::format("-concurrency{}", *plan.max_concurrency) : "";
  std::string name = fmt::format("{}-{}{}-{}-{}.json", subject, rate, cap, model, plan.date);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string vllm_path(const RunPlan& plan, const SaveOptions& options) {
  const std::string name = options.file_name.empty() ? vllm_file_name(plan) : options.file_name;
  return (fs::path(options.folder) / name).string();
}

Status check_result_path(const RunPlan& plan, const SaveOptions& options) {
  const fs::path path = vllm_path(plan, options);
  std::error_code error;
  if (fs::is_directory(path, error))
    return usage_error(
        fmt::format("the result file {} is a folder; name a file with --result-filename", path.string()));
  fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  while (!folder.empty() && !fs::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  if (folder.empty() || !fs::exists(folder, error)) folder = ".";
  if (!fs::is_directory(folder, error))
    return usage_error(fmt::format("cannot write results to {}: {} is no folder; name another --result-dir",
                                   path.string(), folder.string()));
  if (fs::exists(path, error)) {
    if (std::ofstream(path, std::ios::app)) return {};
    return usage_error(
        fmt::format("the result file {} cannot be written; name another with --result-filename", path.string()));
  }
  const fs::path probe = folder / ".tokenstone-write-test";
  const bool can_write = static_cast<bool>(std::ofstream(probe));
  fs::remove(probe, error);
  if (!can_write)
    return usage_error(fmt::format("the folder {} cannot be written; name another --result-dir", folder.string()));
  return {};
}

Result<std::string> save_vllm_result(const RunResult& run, const MetricSet& metrics, const SaveOptions& options) {
  const std::string path = vllm_path(run.plan, options), text = vllm_result_json(run, metrics);
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (!options.append) {
    TS_TRY_STATUS(record::write_file_atomically(path, text));
    return path;
  }
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text << std::flush;
  if (!out) return fail(ErrorKind::interrupted, fmt::format("cannot append the result to {}: is the disk full?", path));
  return path;
}

}  // namespace tokenstone::report
