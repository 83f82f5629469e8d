// Does a schedule follow the law it was asked to follow? Kolmogorov-Smirnov tests of gaps, and the index of dispersion
// of counts.
//
// Ownership: plain functions. Threads: any. Units: any, the same for values and parameters. Failure: preconditions
// only. Sources: the limiting distribution after Kolmogorov 1933 with Stephens's correction for finite samples (JASA
// 69, 1974); the incomplete gamma function by its series and by Lentz's continued fraction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/types.h"

namespace tokenstone::stats {

struct KsResult {
  double statistic = 0;  ///< largest distance between the empirical and the asked distribution function
  double p_value = 1;    ///< chance of a distance at least as large if the law holds
  std::uint64_t count = 0;
};

/// Against any continuous distribution function. The parameters must not have been fitted to the same values.
KsResult ks_test(std::span<const double> values, const std::function<double(double)>& distribution);
KsResult ks_test_exponential(std::span<const double> values, double mean);
KsResult ks_test_gamma(std::span<const double> values, double shape, double mean);
KsResult ks_test_uniform(std::span<const double> values, double lo, double hi);

/// Regularised lower incomplete gamma function P(shape, x). Preconditions: shape > 0, x >= 0.
double gamma_distribution(double shape, double x);
/// P(D > d) for a sample of that size.
double kolmogorov_p_value(double d, std::uint64_t count);

/// Variance over mean of the counts in windows [0, w), [w, 2w), ... up to `end` (whole windows only): 1 for a Poisson
/// process, 0 for a constant one, above 1 for bursts. Times must ascend and not be negative. 0 without events or with
/// fewer than two windows.
double index_of_dispersion(std::span<const TimeNs> times, TimeNs window, TimeNs end);

/// Seconds from zero to the first time and between neighbours: what a schedule's law speaks of.
std::vector<double> gaps_in_seconds(std::span<const TimeNs> times);

}  // namespace tokenstone::stats
