// Azure's traces as requests: recorded times and lengths, random content.
#include <fmt/format.h>

#include "base/text.h"
#include "workload/azure_trace.h"
#include "workload/data_file.h"
#include "workload/lengths.h"
#include "workload/trace_source.h"

namespace tokenstone::workload {
namespace {

struct AzureRow {
  TimeNs time = 0;
  std::int64_t input = 0, output = 0;
};

// The row, or why it cannot be used.
std::expected<AzureRow, std::string> parse_row(std::string_view line, const AzureColumns& columns) {
  const auto fields = csv_fields(line);
  if (fields.size() <= std::max({columns.time, columns.input, columns.output}))
    return std::unexpected("too few columns");
  const auto time = parse_timestamp(fields[columns.time]);
  if (!time) return std::unexpected("not a time stamp");
  const auto input = parse_int(fields[columns.input]), output = parse_int(fields[columns.output]);
  if (!input || !output || *input < 0 || *output < 0 || std::max(*input, *output) > kLongestLength)
    return std::unexpected("not a token count");
  if (*input == 0) return std::unexpected("0 context tokens");
  if (*output == 0) return std::unexpected("0 generated tokens");
  return AzureRow{*time, *input, *output};
}

}  // namespace

SourceResult azure_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY(const std::string text, read_data_file(options.dataset_path));
  std::optional<AzureColumns> columns;
  bool header = true;
  Trace trace;
  RowAccount account;
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    if (std::exchange(header, false)) {
      columns = azure_columns(line);
      return columns.has_value();
    }
    const auto row = parse_row(line, *columns);
    if (!row) {
      account.drop(row.error(), number);
      return true;
    }
    account.use();
    trace.times.push_back(row->time);
    trace.rows.push_back({scaled(row->input, options.scale), scaled(row->output, options.scale), {}});
    return options.num_prompts == 0 || account.used() < options.num_prompts;
  });
  if (!columns)
    return usage_error(
        fmt::format("{} is not an Azure trace: its first line has not the columns TIMESTAMP, ContextTokens, "
                    "GeneratedTokens{}",
                    options.dataset_path, other_kind_hint(options.dataset_path, "azure")),
        "--dataset-path");
  if (account.used() == 0)
    return account.nothing_usable(options.dataset_path, "rows such as 2023-11-16 18:17:03.9799600,4808,10");
  trace.name = trace.info.name = "azure";
  trace.info.path = options.dataset_path;
  account.report(trace.info);
  return trace_source(options, std::move(content), std::move(trace));
}

}  // namespace tokenstone::workload
