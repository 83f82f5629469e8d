#include "stats/sample.h"

#include <cmath>
#include <numeric>

namespace tokenstone::stats {

void Moments::add(double value) {
  ++count_;
  const double step = value - mean_;
  mean_ += step / static_cast<double>(count_);
  squares_ += step * (value - mean_);
}

void Moments::merge(const Moments& other) {
  if (other.count_ == 0) return;
  const double own = static_cast<double>(count_), theirs = static_cast<double>(other.count_), all = own + theirs;
  const double step = other.mean_ - mean_;
  mean_ += step * theirs / all;
  squares_ += other.squares_ + step * step * own * theirs / all;
  count_ += other.count_;
}

double Moments::sample_variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }

double Moments::population_variance() const { return count_ == 0 ? 0 : squares_ / static_cast<double>(count_); }

Sample::Sample(std::vector<double> values) : values_(std::move(values)), sorted_(false) {
  for (const double value : values_) moments_.add(value);
}

void Sample::add(double value) {
  sorted_ = sorted_ && (values_.empty() || values_.back() <= value);
  values_.push_back(value);
  moments_.add(value);
}

double Sample::sum() const { return std::accumulate(values_.begin(), values_.end(), 0.0); }
double Sample::min() const { return empty() ? 0 : sorted().front(); }
double Sample::max() const { return empty() ? 0 : sorted().back(); }
double Sample::sample_std() const { return std::sqrt(moments_.sample_variance()); }
double Sample::population_std() const { return std::sqrt(moments_.population_variance()); }
Quantile Sample::quantile(double q) const { return judged_quantile(sorted(), q); }

std::span<const double> Sample::sorted() const {
  if (!sorted_) std::sort(values_.begin(), values_.end());
  sorted_ = true;
  return values_;
}

}  // namespace tokenstone::stats
