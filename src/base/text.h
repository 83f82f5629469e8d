// Small helpers for words and numbers: strict parsing, nearest names, figures with three significant digits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone {

/// The whole text as a number in base ten, or nothing. No blanks, no trailing characters. "inf" is allowed for doubles.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
/// "250ms", "1.5s", "80us", "2m", "1h", or a plain number of seconds.
std::optional<TimeNs> parse_duration(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate nearest to `name`, if it is near enough to be a slip of the keyboard.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates);

/// Three significant digits, thousands with commas, never an exponent: 0.412, 18.4, 412, 6,130, 1,234,567.
std::string format_figure(double value);
std::string format_count(std::int64_t value);

/// Replaces ill-formed UTF-8 by U+FFFD, so that the result is always valid.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace tokenstone
