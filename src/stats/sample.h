// A set of exact values with its count, mean, spread and quantiles; and running moments where the values are not kept.
//
// Ownership: a Sample owns its values. Threads: one at a time, reading too (the first quantile sorts).
// Units: those of the values. Failure: none; an empty sample has zeros and unavailable quantiles.
// The spread is computed by Welford's update (Technometrics 4, 1962): sums of squares lose all digits when the values
// are large against their spread, as nanosecond clocks are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stats/quantile.h"

namespace tokenstone::stats {

class Moments {
 public:
  void add(double value);
  /// As if the other's values had been added here (Chan, Golub and LeVeque 1983).
  void merge(const Moments& other);
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  /// Divisor n - 1; 0 for fewer than two values.
  double sample_variance() const;
  /// Divisor n, as NumPy's std and so vLLM's std_* keys.
  double population_variance() const;

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  ///< sum of squared deviations from the mean
};

class Sample {
 public:
  Sample() = default;
  explicit Sample(std::vector<double> values);

  void add(double value);
  void reserve(std::size_t count) { values_.reserve(count); }

  std::uint64_t count() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double mean() const { return moments_.mean(); }
  double sum() const;
  double min() const;
  double max() const;
  double sample_std() const;
  double population_std() const;
  /// NumPy's linear rule with its reliability. Precondition: 0 <= q <= 1.
  Quantile quantile(double q) const;
  /// Ascending.
  std::span<const double> sorted() const;

 private:
  mutable std::vector<double> values_;
  mutable bool sorted_ = true;
  Moments moments_;
};

}  // namespace tokenstone::stats
