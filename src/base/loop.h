// The event loop that everything timed runs on: real (epoll) or virtual (a heap of instants).
//
// What: timers, file-descriptor readiness, and functions posted from other threads.
// Ownership: a callback is destroyed after it ran or was cancelled; the loop outlives whoever holds a TimerId.
// Threads: all calls on the loop's own thread, except `post` and `stop`, which any thread may call.
// Units: TimeNs of the loop's own clock (monotonic or virtual).
// Failure: none; an fd that cannot be watched is a programmer error and stops.
#pragma once

#include <functional>

#include "base/types.h"

namespace tokenstone {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeNs now() const = 0;
};

/// What an fd is watched for and what became ready.
struct Readiness {
  bool readable = false;
  bool writable = false;
  bool hangup = false;  ///< error or hang-up; always reported, never asked for
};

class Loop : public Clock {
 public:
  using Callback = std::move_only_function<void()>;
  using IoCallback = std::move_only_function<void(Readiness)>;

  /// Runs `fn` once at or after `t`. Timers with equal `t` run in the order in which they were set.
  virtual TimerId at(TimeNs t, Callback fn) = 0;
  /// Forgets a timer; one that has run or was cancelled already is ignored.
  virtual void cancel(TimerId timer) = 0;
  /// Level-triggered readiness of `fd`; a second call for the same fd replaces interest and callback.
  /// A callback may unwatch its own fd. Not available in virtual time (stops).
  virtual void watch(int fd, Readiness interest, IoCallback fn) = 0;
  /// Changes the interest of a watched fd and keeps its callback.
  virtual void rewatch(int fd, Readiness interest) = 0;
  virtual void unwatch(int fd) = 0;
  /// Runs `fn` on the loop's thread soon, in order of posting. Any thread.
  virtual void post(Callback fn) = 0;
  /// Runs until `stop()`, or until the clock passes `t`, or (virtual time) until nothing is left to do.
  virtual void run_until(TimeNs t) = 0;
  void run() { run_until(kNever); }
  /// Makes `run_until` return after the callback that is running. Any thread.
  virtual void stop() = 0;
};

}  // namespace tokenstone
