#include "stats/quantile.h"

#include <cmath>

#include "base/check.h"

namespace tokenstone::stats {
namespace {

// 1 - 0.99 is a little more than 0.01 and 1 - 0.9 a little less than 0.1; counts must not hang on that.
constexpr double kRounding = 1e-9;

double tail_of(double q) { return std::min(q, 1 - q); }

}  // namespace

double quantile_of_sorted(std::span<const double> sorted, double q) {
  TS_CHECK(!sorted.empty() && q >= 0 && q <= 1, "a quantile needs samples and 0 <= q <= 1");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = position - static_cast<double>(below);
  return sorted[below] + (sorted[below + 1] - sorted[below]) * share;
}

std::uint64_t samples_needed(double q) {
  const double tail = tail_of(q);
  if (tail <= 0) return 0;
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(kSamplesBeyond) / tail - kRounding * 1e3));
}

Quantile judged_quantile(std::span<const double> sorted, double q) {
  Quantile result;
  result.needed = samples_needed(q);
  if (sorted.empty()) return result;
  result.value = quantile_of_sorted(sorted, q);
  result.beyond = static_cast<std::uint64_t>(static_cast<double>(sorted.size()) * tail_of(q) + kRounding);
  result.available = result.beyond > 0 || tail_of(q) <= 0;
  result.reliable = result.beyond >= kSamplesBeyond;
  return result;
}

}  // namespace tokenstone::stats
