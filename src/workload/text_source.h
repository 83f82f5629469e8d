// Rows of text with an output length as a source of requests: `sharegpt` and `custom`. Internal to the module.
//
// Ownership: owns its rows. Threads, units, failure: as in workload/source.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/sources.h"

namespace tokenstone::workload {

struct TextRow {
  std::string text;
  std::vector<TokenId> ids;  ///< instead of the text, where the file gives token ids
  std::int64_t prompt_len = 0;
  std::int64_t output_len = 0;
};

std::unique_ptr<RequestSource> text_source(const WorkloadOptions& options, ContentPtr content,
                                           std::vector<TextRow> rows, record::DatasetInfo info);

/// 0 .. count-1 in the seed's order (Fisher and Yates), or as they are.
std::vector<std::uint32_t> row_order(std::size_t count, const WorkloadOptions& options);

}  // namespace tokenstone::workload
