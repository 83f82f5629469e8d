// A CSV file with a header line, read by column name: the common part of the readers of requests.csv and steps.csv.
//
// Ownership: keeps the fields of the current row only; the text must outlive it. Failure: a missing column or a field
// that is no number is an error with file, line and column.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/csv.h"

namespace tokenstone::record {

class CsvTable {
 public:
  /// Reads the header and requires the columns named.
  static Result<CsvTable> open(std::string_view text, std::string path, std::span<const std::string_view> required);
  bool next();
  const std::string& text(std::string_view column) const;
  /// Nothing for an empty field; a malformed number is remembered and shows in `status()`.
  std::optional<std::int64_t> number(std::string_view column);
  Status status() const;
  /// A wrong word in a column, to be returned to the caller of the reader.
  std::unexpected<Error> wrong(std::string_view column, std::string_view expected) const;

 private:
  CsvTable(std::string_view text, std::string path) : reader_(text), path_(std::move(path)) {}
  CsvReader reader_;
  std::string path_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string> fields_;
  std::string error_;
};

}  // namespace tokenstone::record
