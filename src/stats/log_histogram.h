// Counts of non-negative integers in bins whose width grows with the value: three significant digits from 0 to 2^63 - 1
// in a fixed half megabyte, so that nothing ever falls outside. For streams too long to be kept; a Sample is exact.
//
// Values below 2048 have a bin each. Above, every power of two is cut into 1024 bins: a value v with its highest bit at
// position p >= 11 falls into a bin of width 2^(p - 10), less than v / 1024. Example: 3000 (p = 11) shares a bin with
// 3001. Idea after HdrHistogram (Gil Tene).
//
// Ownership: owns its bins. Threads: one at a time. Units: the caller's. Failure: negative values are a programmer's
// error.
#pragma once

#include <cstdint>
#include <vector>

namespace tokenstone::stats {

class LogHistogram {
 public:
  LogHistogram();
  void add(std::int64_t value, std::uint64_t times = 1);
  void merge(const LogHistogram& other);

  std::uint64_t count() const { return count_; }
  std::int64_t min() const { return count_ == 0 ? 0 : min_; }
  std::int64_t max() const { return count_ == 0 ? 0 : max_; }
  /// The middle of the bin that holds the value of rank ceil(q x count), kept within [min, max]; 0 when empty.
  /// Precondition: 0 <= q <= 1.
  std::int64_t quantile(double q) const;

 private:
  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  std::int64_t min_ = 0, max_ = 0;
};

}  // namespace tokenstone::stats
