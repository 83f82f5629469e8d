#include "report/figures.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::report {
namespace {

std::size_t code_points_end(std::string_view text, std::size_t wanted) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < text.size() && n < wanted; ++n) do
      ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

}  // namespace

Scale time_scale(double typical_ms) {
  if (typical_ms >= 1000) return {"s", 1e-3};
  if (typical_ms > 0 && typical_ms < 0.1) return {"us", 1e3};
  return {"ms", 1};
}

std::string quantile_cell(const stats::Sample& sample, double q, double factor) {
  const stats::Quantile quantile = sample.quantile(q);
  if (!quantile.available) return "n/a";
  return format_figure(quantile.value * factor) + (quantile.reliable ? "" : "~");
}

std::string count_cell(std::uint64_t n) {
  if (n < 100'000) return format_count(static_cast<std::int64_t>(n));
  if (n < 10'000'000) return format_count(std::llround(static_cast<double>(n) / 1e3)) + "k";
  return format_figure(static_cast<double>(n) / 1e6) + "M";
}

std::string brief(double value) {
  if (value == 0 || !std::isfinite(value)) return format_figure(value);
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 9);
  if (decimals == 0) return format_count(std::llround(value));
  std::string text = fmt::format("{:.{}f}", value, decimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string time_text(double ms) {
  const Scale scale = time_scale(ms);
  return fmt::format("{} {}", format_figure(ms * scale.factor), scale.unit);
}

std::vector<std::string> aligned_rates(const std::vector<double>& rates) {
  double largest = 0;
  for (const double rate : rates) largest = std::max(largest, rate);
  const int decimals = largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 1 || largest == 0 ? 2 : 3;
  std::vector<std::string> texts;
  for (const double rate : rates)
    texts.push_back(decimals == 0 ? format_count(std::llround(rate)) : fmt::format("{:.{}f}", rate, decimals));
  return texts;
}

std::size_t display_width(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width > used ? width - used : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::string cut(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  return std::string(text.substr(0, code_points_end(text, width - 1))) + "…";
}

std::string wrap_parts(std::string_view label, const std::vector<std::string>& parts, std::string_view separator) {
  const std::size_t indent = display_width(label);
  std::string out, line(label);
  bool fresh = true;
  for (const std::string& part : parts) {
    if (!fresh && display_width(line) + display_width(separator) + display_width(part) > kColumns) {
      out += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    if (!fresh) line += separator;
    line += cut(part, kColumns - indent);
    fresh = false;
  }
  return out + line + "\n";
}

std::string wrap_words(std::string_view label, std::string_view sentence) {
  std::vector<std::string> words;
  for (const std::string_view word : split(sentence, ' ')) words.emplace_back(word);
  return wrap_parts(label, words, " ");
}

}  // namespace tokenstone::report
