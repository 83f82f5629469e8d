// Converts the kernel's receive stamps, which are wall-clock times, into the loop's monotonic time.
//
// offset = monotonic - wall, measured by reading the wall clock between two readings of the monotonic clock; the
// tightest of a few brackets is taken, and half its width is how well the offset is known. It is measured again when
// older than `kMaxAge`, because the wall clock may be slewed (up to 500 ppm: 5 us in 10 ms) or set.
//
// Ownership: none. Threads: one. Units: ns. Failure: none; a stamp that would lie in the future becomes `now`.
#pragma once

#include "base/types.h"

namespace tokenstone::platform {

class StampClock {
 public:
  static constexpr TimeNs kMaxAge = 10 * kMillisecond;

  /// `wall_stamp` in monotonic time, at most `now` (the monotonic time at which the bytes were found ready or read).
  TimeNs to_monotonic(TimeNs wall_stamp, TimeNs now);
  /// Half the width of the widest bracket used so far.
  TimeNs worst_uncertainty_ns() const { return worst_uncertainty_; }

 private:
  void measure();

  TimeNs offset_ = 0;
  TimeNs measured_at_ = kUnknownTime;
  TimeNs worst_uncertainty_ = 0;
};

}  // namespace tokenstone::platform
