// Quantiles by NumPy's default ("linear", Hyndman and Fan's type 7), and how far a sample can carry them.
//
// Ownership: plain functions. Threads: any. Units: those of the values. Failure: preconditions only.
// Example: of {10, 20, 30, 40} the 0.5-quantile stands at position 0.5 x 3 = 1.5, so it is 25.
#pragma once

#include <cstdint>
#include <span>

namespace tokenstone::stats {

/// Samples that must lie beyond a quantile before it is shown without a mark.
inline constexpr std::uint64_t kSamplesBeyond = 10;

struct Quantile {
  double value = 0;  ///< 0 for an empty sample
  bool available =
      false;  ///< at least one sample lies beyond it (for the smallest and the largest: one sample is there)
  bool reliable = false;     ///< at least kSamplesBeyond samples lie beyond it
  std::uint64_t beyond = 0;  ///< samples that lie beyond it: floor(n x min(q, 1 - q))
  std::uint64_t needed = 0;  ///< sample size that makes it reliable; 0: no size does (q is 0 or 1)
};

/// Preconditions: `sorted` ascends and is not empty, 0 <= q <= 1.
double quantile_of_sorted(std::span<const double> sorted, double q);

/// The same with its reliability; an empty sample gives an unavailable one.
Quantile judged_quantile(std::span<const double> sorted, double q);

/// Smallest sample that leaves kSamplesBeyond samples beyond q: 1000 for 0.99.
std::uint64_t samples_needed(double q);

}  // namespace tokenstone::stats
