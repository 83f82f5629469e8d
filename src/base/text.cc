#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace tokenstone {

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  if (text == "inf" || text == "infinity") return std::numeric_limits<double>::infinity();
  if (text.empty() || text.find_first_of("nN") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<TimeNs> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view suffix;
    double ns;
  };
  static constexpr Unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    const auto number = parse_double(text.substr(0, text.size() - unit.suffix.size()));
    if (number && std::isfinite(*number) && *number * unit.ns < 9e18)
      return static_cast<TimeNs>(std::llround(*number * unit.ns));
  }
  const auto seconds = parse_double(text);
  if (!seconds || !std::isfinite(*seconds) || *seconds >= 9e9) return std::nullopt;
  return from_seconds(*seconds);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string format_count(std::int64_t value) {
  const std::string digits = std::to_string(value < 0 ? -value : value);
  std::string out = value < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string format_figure(double value) {
  if (!std::isfinite(value)) return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : "n/a";
  if (value == 0) return "0";
  const double size = std::fabs(value);
  if (size >= 999.5) {
    // Whole numbers from a thousand up; the digits beyond the third are shown, they cost no room and mislead nobody.
    return format_count(std::llround(value));
  }
  const int magnitude = static_cast<int>(std::floor(std::log10(size)));
  const int decimals = std::clamp(2 - magnitude, 0, 9);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  // Rounding may have added a digit (9.996 -> 10.00): format again with one decimal less.
  if (decimals > 0 && std::fabs(std::stod(text)) >= std::pow(10.0, magnitude + 1))
    text = fmt::format("{:.{}f}", value, decimals - 1);
  return text;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  std::size_t i = 0;
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(bytes[k]); };
  while (i < bytes.size()) {
    const unsigned char lead = byte(i);
    std::size_t length = lead < 0x80                    ? 1
                         : lead >= 0xC2 && lead <= 0xDF ? 2
                         : (lead & 0xF0) == 0xE0        ? 3
                         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                        : 0;
    std::size_t good = length == 0 ? 0 : 1;
    for (; good > 0 && good < length && i + good < bytes.size(); ++good) {
      const unsigned char next = byte(i + good);
      unsigned char low = 0x80, high = 0xBF;
      if (good == 1) {
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
      }
      if (next < low || next > high) break;
    }
    if (length != 0 && good == length) {
      out.append(bytes.substr(i, length));
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      i += std::max<std::size_t>(1, good);
    }
  }
  return out;
}

}  // namespace tokenstone
