// Comma-separated values as RFC 4180 has them: a field that holds a comma, a quote or a line end stands in quotes, and
// a quote inside is doubled. Example: the fields `a,b` and `say "x"` are written `"a,b","say ""x"""`.
//
// Ownership: CsvReader keeps a view; the text must outlive it. Threads: none of it is shared. Failure: a torn last line
// (no line end, as a killed run leaves it) is not a row; `torn()` says that there was one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone::record {

/// Builds one line; `end()` gives it with its line end.
class CsvLine {
 public:
  CsvLine& text(std::string_view value);
  CsvLine& number(std::int64_t value);
  /// Empty when the time is not known.
  CsvLine& time(TimeNs value);
  /// Empty when negative: the count is not known.
  CsvLine& count(std::int64_t value);
  std::string end();

 private:
  void separate();
  std::string line_;
  bool first_ = true;
};

class CsvReader {
 public:
  explicit CsvReader(std::string_view text);
  /// The next whole row, or false at the end.
  bool next(std::vector<std::string>& fields);
  bool torn() const { return torn_; }
  /// Number of the row that `next` gave last, from 1.
  std::size_t row() const { return row_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t row_ = 0;
  bool torn_ = false;
};

}  // namespace tokenstone::record
