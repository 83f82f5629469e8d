// The results for machines: result.json (a superset of vLLM's keys) and vLLM's own file. Strict JSON: what was not
// measured and what is not finite is null; the one exception is vLLM's `request_rate`, the string "inf" when all is
// sent at once.
//
// Ownership: plain values. Threads: any. Units: in the key (`_ms`, `_s`) or beside the value. Failure: only where files
// are written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/verdict.h"
#include "record/metrics.h"
#include "record/run.h"
#include "record/spread.h"

namespace tokenstone::report {

inline constexpr int kResultVersion = 1;

/// Indented, with a line end. Everything but `date` and `environment` follows from the plan and the records, so that
/// runs in virtual time give the same bytes.
std::string result_json(const record::RunResult& run, const record::MetricSet& metrics, const judge::Verdict& verdict);

/// vLLM's file: one line. Arrays of `--save-detailed` stand in planned order.
std::string vllm_result_json(const record::RunResult& run, const record::MetricSet& metrics);

/// vLLM's rule: `{label or backend}-{rate}qps[-concurrency{N}]-{model base name}-{date}.json`.
std::string vllm_file_name(const record::RunPlan& plan);

struct SaveOptions {
  std::string folder;     ///< --result-dir; empty: here. Made when it is not there.
  std::string file_name;  ///< --result-filename; empty: vLLM's rule
  bool append = false;    ///< --append-result: one JSON object a line
};
/// The path that save_vllm_result will write.
std::string vllm_path(const record::RunPlan& plan, const SaveOptions& options);
/// Before the run: can that path be written? Leaves nothing behind.
Status check_result_path(const record::RunPlan& plan, const SaveOptions& options);
/// Gives the path.
Result<std::string> save_vllm_result(const record::RunResult& run, const record::MetricSet& metrics,
                                     const SaveOptions& options);

/// `--num-runs`: an object of metric -> {n, mean, std, min, max, cv, unit}; and the table for a person.
std::string spread_json(const std::map<std::string, record::Spread>& spread);
std::string spread_table(const std::map<std::string, record::Spread>& spread);

}  // namespace tokenstone::report
