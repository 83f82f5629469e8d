// The event loop in real time: epoll for readiness, a heap of timers, an eventfd for functions posted from other
// threads.
//
// Clock: CLOCK_MONOTONIC in ns. Timers have the kernel's high-resolution precision (epoll_pwait2); between a timer's
// instant and its callback lies what the machine's scheduler takes, and no polling interval. Threads and failure: as
// base/loop.h.
#pragma once

#include <atomic>
#include <memory>

#include "base/loop.h"

namespace tokenstone::platform {

/// Monotonic ns; the one place that reads a clock for measured time.
TimeNs monotonic_now();
/// Wall clock, ns since 1970; for dates and for converting kernel stamps, never for measuring.
TimeNs wall_now();

/// How a loop's waiting behaved: the longest time that one round of callbacks kept it from its timers.
struct LoopHealth {
  TimeNs longest_round_ns = 0;
  std::uint64_t rounds = 0;
};

class RealLoop : public Loop {
 public:
  virtual LoopHealth health() const = 0;
  virtual void reset_health() = 0;
};

std::unique_ptr<RealLoop> make_real_loop();

}  // namespace tokenstone::platform
