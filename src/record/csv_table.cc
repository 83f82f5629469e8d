#include "record/csv_table.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace tokenstone::record {

Result<CsvTable> CsvTable::open(std::string_view text, std::string path, std::span<const std::string_view> required) {
  CsvTable table(text, std::move(path));
  if (!table.reader_.next(table.fields_))
    return usage_error(fmt::format("{}: expected a header line, found an empty file", table.path_));
  for (std::size_t i = 0; i < table.fields_.size(); ++i) table.columns_.emplace(table.fields_[i], i);
  for (const std::string_view column : required)
    if (!table.columns_.contains(column))
      return usage_error(fmt::format("{}: expected a column '{}' in the header", table.path_, column));
  return table;
}

bool CsvTable::next() {
  if (!error_.empty() || !reader_.next(fields_)) return false;
  if (fields_.size() == columns_.size()) return true;
  error_ = fmt::format("{}:{}: expected {} fields, found {}", path_, reader_.row(), columns_.size(), fields_.size());
  return false;
}

const std::string& CsvTable::text(std::string_view column) const {
  const auto found = columns_.find(column);
  TS_CHECK(found != columns_.end(), "column was required at open");
  return fields_[found->second];
}

std::optional<std::int64_t> CsvTable::number(std::string_view column) {
  const std::string& field = text(column);
  if (field.empty()) return std::nullopt;
  const auto value = parse_int(field);
  if (!value && error_.empty()) error_ = wrong(column, "a whole number").error().message;
  return value;
}

Status CsvTable::status() const {
  if (!error_.empty()) return usage_error(error_);
  return {};
}

std::unexpected<Error> CsvTable::wrong(std::string_view column, std::string_view expected) const {
  return usage_error(
      fmt::format("{}:{}: column '{}': expected {}, found '{}'", path_, reader_.row(), column, expected, text(column)));
}

}  // namespace tokenstone::record
