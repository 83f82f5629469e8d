#include "stats/log_histogram.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace tokenstone::stats {
namespace {

constexpr unsigned kExactBits = 11;
constexpr std::uint64_t kExact = std::uint64_t{1} << kExactBits;
constexpr std::uint64_t kBinsPerDoubling = kExact / 2;
constexpr std::size_t kBins = kExact + (63 - kExactBits) * kBinsPerDoubling;

std::size_t bin_of(std::uint64_t value) {
  if (value < kExact) return value;
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kExactBits;
  return shift * kBinsPerDoubling + (value >> shift);
}

std::int64_t middle_of(std::size_t bin) {
  if (bin < kExact) return static_cast<std::int64_t>(bin);
  const std::uint64_t shift = bin / kBinsPerDoubling - 1;
  const std::uint64_t low = (bin - shift * kBinsPerDoubling) << shift;
  return static_cast<std::int64_t>(low + (std::uint64_t{1} << shift) / 2);
}

}  // namespace

LogHistogram::LogHistogram() : bins_(kBins, 0) {}

void LogHistogram::add(std::int64_t value, std::uint64_t times) {
  TS_CHECK(value >= 0, "the histogram holds non-negative values");
  if (times == 0) return;
  bins_[bin_of(static_cast<std::uint64_t>(value))] += times;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  count_ += times;
}

void LogHistogram::merge(const LogHistogram& other) {
  if (other.count_ == 0) return;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) bins_[bin] += other.bins_[bin];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  count_ += other.count_;
}

std::int64_t LogHistogram::quantile(double q) const {
  TS_CHECK(q >= 0 && q <= 1, "a quantile needs 0 <= q <= 1");
  if (count_ == 0) return 0;
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (seen >= rank) return std::clamp(middle_of(bin), min_, max_);
  }
  return max_;
}

}  // namespace tokenstone::stats
