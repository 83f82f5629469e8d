// How numbers become text in tables: one unit per row, three significant digits, `~` and `n/a` where the sample is too
// small.
//
// Ownership: plain values. Threads: any. Units: as named. Failure: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stats/sample.h"

namespace tokenstone::report {

/// A unit and the factor from milliseconds to it.
struct Scale {
  std::string_view unit;
  double factor = 1;
};
/// us, ms or s, so that the typical value reads well.
Scale time_scale(double typical_ms);

/// "412", "690~" (unreliable), "n/a" (none beyond).
std::string quantile_cell(const stats::Sample& sample, double q, double factor);
/// "3,594", "885k", "12.3M".
std::string count_cell(std::uint64_t n);
/// Two significant digits without trailing zeros, for asides: "0.4", "41", "0.09", "7".
std::string brief(double value);
/// A time in ms with the unit that suits it: "412 ms", "1.60 s".
std::string time_text(double ms);
/// Rates that stand beside each other: decimals chosen once, by the largest.
std::vector<std::string> aligned_rates(const std::vector<double>& rates);

/// Columns on a terminal: code points, which is right for what the summary holds.
std::size_t display_width(std::string_view utf8);
std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);
/// Cuts to `width` columns with an ellipsis.
std::string cut(std::string_view text, std::size_t width);

/// Joins parts with `separator`, breaking into lines of at most 80 columns; the first begins with `label`, the others
/// with as many blanks.
std::string wrap_parts(std::string_view label, const std::vector<std::string>& parts, std::string_view separator);
/// Breaks a sentence at blanks in the same way.
std::string wrap_words(std::string_view label, std::string_view sentence);

inline constexpr std::size_t kColumns = 80;

}  // namespace tokenstone::report
