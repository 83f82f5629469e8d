#include "judge/limits.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::judge {
namespace {

using record::Limit;

const std::vector<std::string> kNames = {"ttft", "tpot", "itl", "e2el"};

Result<std::string> metric_name(std::string_view name, std::string_view whole, std::string_view flag) {
  std::string lower = to_lower(trim(name));
  if (lower == "e2e") lower = "e2el";
  if (std::find(kNames.begin(), kNames.end(), lower) != kNames.end()) return lower;
  const auto near = nearest_name(lower, kNames);
  return usage_error(fmt::format("{} '{}': expected one of ttft, tpot, itl, e2el, found '{}'{}", flag, whole,
                                 trim(name), near ? fmt::format("; did you mean '{}'?", *near) : ""),
                     std::string(flag));
}

/// "p99" or "median" -> 0.99, 0.5.
std::optional<double> parse_quantile(std::string_view text) {
  if (text == "median") return 0.5;
  if (!text.starts_with('p')) return std::nullopt;
  const auto percent = parse_double(text.substr(1));
  if (!percent || !(*percent > 0) || !(*percent < 100)) return std::nullopt;
  return *percent / 100;
}

/// Milliseconds; a plain number only where `plain_ms` allows it.
std::optional<double> parse_limit_ms(std::string_view text, bool plain_ms) {
  std::optional<double> ms = parse_double(text);
  if (ms && !plain_ms) return std::nullopt;
  if (!ms) {
    const auto duration = parse_duration(text);
    if (!duration) return std::nullopt;
    ms = to_millis(*duration);
  }
  if (!std::isfinite(*ms) || *ms <= 0) return std::nullopt;
  return ms;
}

/// Splits "ttft.p99" and reads both parts.
Result<Limit> parse_subject(std::string_view subject, std::string_view whole, std::string_view flag) {
  Limit limit;
  limit.text = std::string(whole);
  const std::size_t dot = subject.find('.');
  TS_TRY(limit.metric, metric_name(subject.substr(0, dot), whole, flag));
  if (dot == std::string_view::npos) return limit;
  const std::string_view word = trim(subject.substr(dot + 1));
  limit.quantile = parse_quantile(word);
  if (!limit.quantile)
    return usage_error(
        fmt::format("{} '{}': expected a quantile such as p99 or p99.9 after the dot, found '{}'", flag, whole, word),
        std::string(flag));
  return limit;
}

Result<Limit> parse_objective(std::string_view text) {
  const std::size_t less = text.find('<');
  if (less == std::string_view::npos)
    return usage_error(fmt::format("--slo '{}': expected METRIC.QUANTILE<LIMIT, for instance ttft.p99<500ms", text),
                       "slo");
  TS_TRY(Limit limit, parse_subject(trim(text.substr(0, less)), text, "--slo"));
  if (!limit.quantile)
    return usage_error(
        fmt::format(
            "--slo '{}': expected a quantile, for instance {}.p99<500ms; for a limit on each request use --goodput",
            text, limit.metric),
        "slo");
  std::string_view value = text.substr(less + 1);
  if (value.starts_with('=')) value.remove_prefix(1);
  const auto ms = parse_limit_ms(trim(value), false);
  if (!ms)
    return usage_error(
        fmt::format("--slo '{}': expected a time above 0 with its unit, for instance 500ms or 2s, found '{}'", text,
                    trim(value)),
        "slo");
  limit.limit_ms = *ms;
  return limit;
}

}  // namespace

Result<Limit> parse_goodput_limit(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos)
    return usage_error(fmt::format("--goodput '{}': expected METRIC:MILLISECONDS, for instance ttft:200", word),
                       "goodput");
  TS_TRY(Limit limit, parse_subject(word.substr(0, colon), word, "--goodput"));
  if (limit.quantile && limit.metric != "itl")
    return usage_error(
        fmt::format("--goodput '{}': only itl has a quantile within one request; use --slo for the run's quantiles",
                    word),
        "goodput");
  const auto ms = parse_limit_ms(trim(word.substr(colon + 1)), true);
  if (!ms)
    return usage_error(
        fmt::format("--goodput '{}': expected milliseconds above 0, found '{}'", word, trim(word.substr(colon + 1))),
        "goodput");
  limit.limit_ms = *ms;
  return limit;
}

Result<std::vector<Limit>> parse_goodput(const std::vector<std::string>& words) {
  std::vector<Limit> limits;
  for (const std::string& word : words) {
    TS_TRY(Limit limit, parse_goodput_limit(trim(word)));
    for (const Limit& other : limits)
      if (other.metric == limit.metric && other.quantile == limit.quantile)
        return usage_error(
            fmt::format("--goodput: '{}' and '{}' limit the same metric; give one", other.text, limit.text), "goodput");
    limits.push_back(std::move(limit));
  }
  return limits;
}

Result<std::vector<Limit>> parse_slo(std::string_view text) {
  std::vector<Limit> limits;
  if (trim(text).empty())
    return usage_error("--slo: expected at least one objective, for instance ttft.p99<500ms", "slo");
  for (const std::string_view part : split(text, ',')) {
    TS_TRY(Limit limit, parse_objective(trim(part)));
    limits.push_back(std::move(limit));
  }
  return limits;
}

std::string quantile_name(double quantile) {
  const double percent = std::round(quantile * 1e8) / 1e6;  // 0.999 x 100 is not quite 99.9
  return fmt::format("p{}", percent);
}

}  // namespace tokenstone::judge
