// steps.csv: one line per engine step, the columns of docs/formats.md (the fields of StepRecord, by their names).
//
// Ownership: the writer owns its file. Threads: `on_step` comes from the engine's thread, the flushes from the client
// loop's; a short lock guards the lines in memory, and no file is written under it. Failure: a Status (disk full:
// interrupted).
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/append_file.h"
#include "record/records.h"

namespace tokenstone::record {

std::span<const std::string_view> step_columns();
std::string step_csv_line(const StepRecord& step);

class StepCsvWriter final : public StepSink {
 public:
  static Result<std::unique_ptr<StepCsvWriter>> create(const std::string& path);
  void on_step(const StepRecord& step) override;
  Status maybe_flush(TimeNs now);
  Status flush();

 private:
  explicit StepCsvWriter(AppendFile file) : file_(std::move(file)) {}
  void take_lines();

  std::mutex mutex_;
  std::string lines_;  ///< guarded by mutex_
  AppendFile file_;    ///< the flushing thread's only
};

Result<std::vector<StepRecord>> parse_steps_csv(std::string_view text, const std::string& path);
Result<std::vector<StepRecord>> read_steps_csv(const std::string& path);

}  // namespace tokenstone::record
