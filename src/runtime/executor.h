// What computes a step: the CPU forward pass, a constant or roofline model of time, a replay.
//
// Threads: the engine loop's thread. Times: `start` is the loop's clock; the result's duration is measured (CPU) or
// computed (simulated). Failure: none; what cannot be computed is a programmer error, capacity is the scheduler's
// matter.
#pragma once

#include <cstdint>
#include <string>

#include "sched/request.h"

namespace tokenstone::runtime {

class Executor {
 public:
  virtual ~Executor() = default;
  /// Computes K and V of every row's tokens, then the next token of each row that samples.
  /// The returned reference stays valid until the next call.
  virtual const sched::StepResult& execute(const sched::StepPlan& plan, TimeNs start) = 0;
  /// True when execute() takes real time on the calling thread; false when the loop must let `duration_ns` pass.
  virtual bool is_real_time() const = 0;
};

}  // namespace tokenstone::runtime
