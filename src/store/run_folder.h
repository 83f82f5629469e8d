// A run's folder while the run goes on: `runs/0001` and on, or the folder that --run-dir names.
//
//   plan.json      before the first request          requests.csv, details.jsonl, events.bin   appended as requests end
//   steps.csv      appended as the engine steps      run.json, result.json                     at the end
//
// run.json is what the records do not hold (window, client's own error, interruption); without it the run was killed.
// Ownership: owns its open files. Threads: the client loop's thread, but `step_sink()` takes steps from the engine's.
// Units: ns. Failure: a folder that is not empty or cannot be written is refused before the run (usage); a write that
// fails later (disk full) gives ErrorKind::interrupted, once and ever after.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "record/append_file.h"
#include "record/events_file.h"
#include "record/request_csv.h"
#include "record/run.h"
#include "record/step_csv.h"

namespace tokenstone::store {

class RunFolder {
 public:
  /// `dir` as the person named it; empty: the next number under `root`. Writes plan.json.
  static Result<RunFolder> create(const std::string& dir, const record::RunPlan& plan,
                                  const std::string& root = "runs");

  /// One request has ended.
  void on_request(const record::RequestRecord& request);
  /// Valid as long as this object is; the folder may be moved.
  record::StepSink& step_sink() { return *steps_; }
  /// Cheap; call it often. Flushes each file at least each second.
  Status maybe_flush(TimeNs now);
  Status flush();
  /// The end: flushes, then writes run.json and result.json, each whole or not at all.
  Status finish(const record::RunResult& run, std::string_view result_json);

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const;

 private:
  RunFolder(std::string path, record::RequestCsvWriter requests, record::EventsWriter events,
            record::AppendFile details, std::unique_ptr<record::StepCsvWriter> steps);

  std::string path_;
  record::RequestCsvWriter requests_;
  record::EventsWriter events_;
  record::AppendFile details_;
  std::unique_ptr<record::StepCsvWriter> steps_;
};

/// Rebuilds the run from its folder. A killed run (no run.json) comes back interrupted, with what its last flush kept;
/// planned requests without a record are unsent.
Result<record::RunResult> load_run(const std::string& dir);

/// events.bin as CSV: request_id, index, event, arrived, parsed, tokens, kind, shared_stamp.
Result<std::string> events_csv(const std::string& dir);

}  // namespace tokenstone::store
