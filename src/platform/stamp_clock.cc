#include "platform/stamp_clock.h"

#include "platform/real_loop.h"

namespace tokenstone::platform {

TimeNs StampClock::to_monotonic(TimeNs wall_stamp, TimeNs now) {
  if (measured_at_ == kUnknownTime || now - measured_at_ > kMaxAge) measure();
  return std::min(wall_stamp + offset_, now);
}

void StampClock::measure() {
  TimeNs best = kNever;
  for (int i = 0; i < 3; ++i) {
    const TimeNs before = monotonic_now();
    const TimeNs wall = wall_now();
    const TimeNs after = monotonic_now();
    measured_at_ = after;
    if (after - before >= best) continue;
    best = after - before;
    offset_ = before + best / 2 - wall;
  }
  worst_uncertainty_ = std::max(worst_uncertainty_, best / 2);
}

}  // namespace tokenstone::platform
