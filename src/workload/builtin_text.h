// Text that comes with the program: lines of poems for the data set `sonnet`, and plain words for prompts without a
// tokenizer.
//
// Ownership: constants. Threads: any. Failure: none.
// The poems are sonnets by William Shakespeare (1609), in the public domain.
#pragma once

#include <span>
#include <string_view>

namespace tokenstone::workload {

/// Newline-separated lines.
std::string_view builtin_sonnets();
/// Short, common, all different; ASCII letters only.
std::span<const std::string_view> plain_words();

}  // namespace tokenstone::workload
