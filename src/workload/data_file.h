// A data set's file as text, and the account of its rows that cannot be used. Internal to the module.
//
// Ownership: plain values. Threads: one at a time. Units: line numbers count from 1.
// Failure: one line for a person: missing, empty, compressed, UTF-16, not text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/run.h"

namespace tokenstone::workload {

/// The whole file without a byte-order mark.
Result<std::string> read_data_file(const std::string& path);

/// Calls `visit(line, number)` for each line that is not blank, without its line end (LF or CRLF), until it returns
/// false.
void for_each_line(std::string_view text, const std::function<bool(std::string_view, std::uint32_t)>& visit);

class RowAccount {
 public:
  void use() { ++used_; }
  /// `line` 0: the row has no line of its own.
  void drop(const std::string& reason, std::uint32_t line);
  std::uint64_t used() const { return used_; }
  std::uint64_t rows() const;
  /// Puts rows, used, dropped and a note with the dropped lines' numbers.
  void report(record::DatasetInfo& info) const;
  /// The error for a file of which no row is usable; `expected` says what a row looks like.
  std::unexpected<Error> nothing_usable(const std::string& path, std::string_view expected) const;

 private:
  std::uint64_t used_ = 0;
  std::map<std::string, std::uint64_t> dropped_;
  std::map<std::string, std::vector<std::uint32_t>> lines_;  ///< the first few of each reason
};

/// "; it looks like Azure CSV (--dataset-name azure)" when the file is recognised as something other than `expected`.
std::string other_kind_hint(const std::string& path, std::string_view expected);

}  // namespace tokenstone::workload
