// The parts of Azure's LLM inference traces: header, fields, time stamps. Internal to the module.
//
//   TIMESTAMP,ContextTokens,GeneratedTokens
//   2023-11-16 18:17:03.9799600,4808,10
//
// Ownership: plain values; fields point into the line. Threads: any. Units: ns since 1970 (no zone is taken as UTC),
// tokens. Failure: nothing where the text is not what it should be.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone::workload {

struct AzureColumns {
  std::size_t time = 0, input = 0, output = 0;
};
/// By name without regard to case, in any order, quoted or not.
std::optional<AzureColumns> azure_columns(std::string_view header);

/// "YYYY-MM-DD hh:mm:ss" with 'T' or a blank between, up to 9 fraction digits, and nothing, 'Z' or an offset such as
/// +01:00 behind.
std::optional<TimeNs> parse_timestamp(std::string_view text);

/// Fields of one line; a quoted field may hold commas and doubled quotes.
std::vector<std::string> csv_fields(std::string_view line);

}  // namespace tokenstone::workload
