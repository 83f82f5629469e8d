#include "stats/arrival_law.h"

#include <cmath>

#include "base/check.h"
#include "stats/sample.h"

namespace tokenstone::stats {
namespace {

constexpr int kMaxTerms = 10'000;
constexpr double kTiny = 1e-300;
constexpr double kPrecision = 1e-15;

// x^a e^-x / Gamma(a): the factor that the series and the fraction share.
double gamma_factor(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

double lower_by_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < kMaxTerms; ++n) {
    term *= x / (a + n);
    sum += term;
    if (term < sum * kPrecision) break;
  }
  return sum * gamma_factor(a, x);
}

double upper_by_fraction(double a, double x) {
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < kMaxTerms; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    if (std::fabs(d * c - 1) < kPrecision) break;
  }
  return h * gamma_factor(a, x);
}

}  // namespace

double gamma_distribution(double shape, double x) {
  TS_CHECK(shape > 0 && x >= 0, "the incomplete gamma function needs shape > 0 and x >= 0");
  if (x == 0) return 0;
  return x < shape + 1 ? lower_by_series(shape, x) : 1 - upper_by_fraction(shape, x);
}

double kolmogorov_p_value(double d, std::uint64_t count) {
  const double root = std::sqrt(static_cast<double>(count));
  const double lambda = (root + 0.12 + 0.11 / root) * d;
  if (lambda < 0.2) return 1;  // the series needs many terms here, and its value differs from 1 by less than 1e-12
  double sum = 0, sign = 1;
  for (int k = 1; k <= 100; ++k) {
    const double term = std::exp(-2.0 * k * k * lambda * lambda);
    sum += sign * term;
    sign = -sign;
    if (term < 1e-16) break;
  }
  return std::clamp(2 * sum, 0.0, 1.0);
}

KsResult ks_test(std::span<const double> values, const std::function<double(double)>& distribution) {
  KsResult result;
  result.count = values.size();
  if (values.empty()) return result;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double expected = distribution(sorted[i]), rank = static_cast<double>(i);
    result.statistic = std::max({result.statistic, expected - rank / n, (rank + 1) / n - expected});
  }
  result.p_value = kolmogorov_p_value(result.statistic, result.count);
  return result;
}

KsResult ks_test_exponential(std::span<const double> values, double mean) {
  return ks_test(values, [mean](double x) { return x <= 0 ? 0 : -std::expm1(-x / mean); });
}

KsResult ks_test_gamma(std::span<const double> values, double shape, double mean) {
  return ks_test(values, [=](double x) { return x <= 0 ? 0 : gamma_distribution(shape, x * shape / mean); });
}

KsResult ks_test_uniform(std::span<const double> values, double lo, double hi) {
  return ks_test(values, [=](double x) { return std::clamp((x - lo) / (hi - lo), 0.0, 1.0); });
}

double index_of_dispersion(std::span<const TimeNs> times, TimeNs window, TimeNs end) {
  TS_CHECK(window > 0, "a window has a length");
  const auto windows = end > 0 ? static_cast<std::size_t>(end / window) : 0;
  if (windows < 2) return 0;
  std::vector<double> counts(windows, 0);
  for (const TimeNs time : times) {
    const auto at = static_cast<std::size_t>(time / window);
    if (at < windows) counts[at] += 1;
  }
  Moments moments;
  for (const double count : counts) moments.add(count);
  return moments.mean() > 0 ? moments.sample_variance() / moments.mean() : 0;
}

std::vector<double> gaps_in_seconds(std::span<const TimeNs> times) {
  std::vector<double> gaps;
  gaps.reserve(times.size());
  TimeNs before = 0;
  for (const TimeNs time : times) {
    gaps.push_back(to_seconds(time - before));
    before = time;
  }
  return gaps;
}

}  // namespace tokenstone::stats
