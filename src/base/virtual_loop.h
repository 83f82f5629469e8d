// Virtual time: a heap of instants. `now()` moves only from one instant to the next, so a run of hours takes as long as
// its events do, and the same input gives the same order of events.
//
// Ownership: callbacks live in slots and are destroyed when they have run or were cancelled; the loop outlives its
// users.
//
// Threads: one; `post` from another thread is a programmer error. `watch` is not available.
//
// Cost: `at` O(log n), `cancel` O(1) amortised: it empties the slot, and the heap drops its emptied entries once they
// are the larger part of it.
//
// Failure: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/loop.h"

namespace tokenstone {

class VirtualLoop final : public Loop {
 public:
  TimeNs now() const override { return now_; }
  TimerId at(TimeNs t, Callback fn) override;
  void cancel(TimerId timer) override;
  void watch(int fd, Readiness interest, IoCallback fn) override;
  void rewatch(int fd, Readiness interest) override;
  void unwatch(int fd) override;
  void post(Callback fn) override { at(now_, std::move(fn)); }
  /// Ends when no instant is left or the next one is after `t`; in the latter case `now()` is `t`.
  void run_until(TimeNs t) override;
  void stop() override { stopped_ = true; }
  /// Heap entries, those of cancelled timers that are not swept yet included; for tests.
  std::size_t heap_size() const { return heap_.size(); }

 private:
  /// `generation` counts the slot's uses, so that the id of a timer that has run never names a later one.
  struct Slot {
    std::uint32_t generation = 1;
    Callback fn;
  };
  struct Instant {
    TimeNs t;
    std::uint64_t order;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Later {
    bool operator()(const Instant& a, const Instant& b) const { return a.t != b.t ? a.t > b.t : a.order > b.order; }
  };

  bool is_live(const Instant& instant) const { return slots_[instant.slot].generation == instant.generation; }
  Callback take(std::uint32_t slot);
  void sweep();

  TimeNs now_ = 0;
  std::uint64_t next_order_ = 1;
  bool stopped_ = false;
  std::size_t cancelled_ = 0;  ///< heap entries whose slot was emptied
  std::vector<Instant> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

}  // namespace tokenstone
