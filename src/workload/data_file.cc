#include "workload/data_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/text.h"
#include "workload/options.h"

namespace tokenstone::workload {
namespace {

constexpr std::size_t kLinesNamed = 5;

std::unexpected<Error> bad_file(const std::string& path, std::string_view found) {
  return usage_error(fmt::format("{}: {}", path, found), "--dataset-path");
}

}  // namespace

Result<std::string> read_data_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return bad_file(path, "is a folder; --dataset-path expects a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_file(path, fmt::format("cannot be read ({}); check --dataset-path", std::strerror(errno)));
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (trim(text).empty()) return bad_file(path, "is empty: a data set needs at least one row");
  if (text.starts_with("\x1F\x8B") || text.starts_with("\x28\xB5\x2F\xFD") || text.starts_with("PK\x03\x04"))
    return bad_file(path, "is compressed; decompress it first");
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return bad_file(path, "is UTF-16; save it as UTF-8");
  if (std::string_view(text).substr(0, 4096).find('\0') != std::string_view::npos)
    return bad_file(path, "is not text; --dataset-path expects CSV, JSON, JSONL or plain text");
  return text;
}

void for_each_line(std::string_view text, const std::function<bool(std::string_view, std::uint32_t)>& visit) {
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!trim(line).empty() && !visit(line, number)) return;
  }
}

void RowAccount::drop(const std::string& reason, std::uint32_t line) {
  ++dropped_[reason];
  auto& lines = lines_[reason];
  if (line > 0 && lines.size() < kLinesNamed) lines.push_back(line);
}

std::uint64_t RowAccount::rows() const {
  std::uint64_t rows = used_;
  for (const auto& [reason, count] : dropped_) rows += count;
  return rows;
}

void RowAccount::report(record::DatasetInfo& info) const {
  info.rows = rows();
  info.used = used_;
  info.dropped = dropped_;
  for (const auto& [reason, lines] : lines_) {
    if (lines.empty()) continue;
    const std::uint64_t count = dropped_.at(reason);
    info.notes.push_back(fmt::format("{} rows dropped, {}: line {}{}", count, reason, fmt::join(lines, ", "),
                                     count > lines.size() ? fmt::format(" and {} more", count - lines.size()) : ""));
  }
}

std::unexpected<Error> RowAccount::nothing_usable(const std::string& path, std::string_view expected) const {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : dropped_) {
    const auto& lines = lines_.at(reason);
    reasons.push_back(
        fmt::format("{}: {}{}", reason, count, lines.empty() ? "" : fmt::format(" (line {})", fmt::join(lines, ", "))));
  }
  return bad_file(path, fmt::format("0 of {} rows usable{}{}; expected {}", rows(), reasons.empty() ? "" : "; ",
                                    join(reasons, "; "), expected));
}

std::string other_kind_hint(const std::string& path, std::string_view expected) {
  const auto kind = detect_dataset(path);
  if (!kind || to_string(*kind) == expected) return "";
  return fmt::format("; it looks like {0} (--dataset-name {0})", to_string(*kind));
}

}  // namespace tokenstone::workload
