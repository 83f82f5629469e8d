// Signals as events of a loop, and the timer precision of the calling thread.
//
// Call `block_signals` on the main thread before any other thread starts, so that all threads inherit it.
// Ownership: a SignalWatch stops watching when it goes. Threads: the loop's thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "base/loop.h"

namespace tokenstone::platform {

void block_signals(std::initializer_list<int> signals);

class SignalWatch {
 public:
  /// Calls `fn(signal)` on the loop's thread for each of the blocked signals that arrives.
  SignalWatch(Loop& loop, std::initializer_list<int> signals, std::function<void(int)> fn);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  Loop& loop_;
  int fd_;
};

/// Lets the calling thread's timers fire without the kernel's default slack of 50 us.
void set_precise_timers();

}  // namespace tokenstone::platform
