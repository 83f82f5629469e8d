// requests.csv: one line per request in the order of completion, the columns of docs/formats.md. Times are ns from the
// run's start; an empty field is not known.
//
// Ownership: the writer owns its file. Threads: the client loop's thread only. Failure: a Status (disk full:
// interrupted).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/append_file.h"
#include "record/records.h"

namespace tokenstone::record {

/// The columns in their order.
std::span<const std::string_view> request_columns();
/// One line with its line end.
std::string request_csv_line(const RequestRecord& request);

class RequestCsvWriter {
 public:
  static Result<RequestCsvWriter> create(const std::string& path);
  void write(const RequestRecord& request);
  Status maybe_flush(TimeNs now) { return file_.maybe_flush(now); }
  Status flush() { return file_.flush(); }

 private:
  explicit RequestCsvWriter(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

/// Columns are found by name, so files with added columns load. A torn last line is left out.
Result<std::vector<RequestRecord>> parse_requests_csv(std::string_view text, const std::string& path);
Result<std::vector<RequestRecord>> read_requests_csv(const std::string& path);

}  // namespace tokenstone::record
