// What kind of data set a file is, told from its first line. A file that cannot be told is an error that lists what was
// tried.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "workload/azure_trace.h"
#include "workload/data_file.h"
#include "workload/options.h"

namespace tokenstone::workload {
namespace {

std::optional<DatasetKind> kind_of_object(const nlohmann::json& row) {
  if (!row.is_object()) return std::nullopt;
  if (row.contains("prompt")) return DatasetKind::custom;
  if (row.contains("hash_ids") || (row.contains("timestamp") && row.contains("input_length")))
    return DatasetKind::mooncake;
  return std::nullopt;
}

}  // namespace

Result<DatasetKind> detect_dataset(const std::filesystem::path& path) {
  TS_TRY(const std::string text, read_data_file(path.string()));
  // A JSON list is read as ShareGPT; its reader says so if the elements are something else.
  if (trim(text).front() == '[') return DatasetKind::sharegpt;
  std::string_view first;
  for_each_line(text, [&](std::string_view line, std::uint32_t) {
    first = line;
    return false;
  });
  if (azure_columns(first)) return DatasetKind::azure;
  if (const auto kind = kind_of_object(nlohmann::json::parse(first.begin(), first.end(), nullptr, false))) return *kind;
  return usage_error(
      fmt::format("{}: kind of data set not recognised (tried azure: no columns TIMESTAMP, ContextTokens, "
                  "GeneratedTokens; mooncake: no JSON with hash_ids; custom: no JSON with prompt; sharegpt: no JSON "
                  "list); name it with --dataset-name",
                  path.string()),
      "--dataset-path");
}

}  // namespace tokenstone::workload
