#include "base/virtual_loop.h"

#include <algorithm>

#include "base/check.h"

namespace tokenstone {

TimerId VirtualLoop::at(TimeNs t, Callback fn) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot].fn = std::move(fn);
  const std::uint32_t generation = slots_[slot].generation;
  heap_.push_back(Instant{std::max(t, now_), next_order_++, slot, generation});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
  return TimerId{(static_cast<std::uint64_t>(generation) << 32) | slot};
}

void VirtualLoop::cancel(TimerId timer) {
  const auto slot = static_cast<std::uint32_t>(timer.value);
  const auto generation = static_cast<std::uint32_t>(timer.value >> 32);
  if (slot >= slots_.size() || slots_[slot].generation != generation) return;
  const Callback dropped = take(slot);
  ++cancelled_;
  if (cancelled_ * 2 > heap_.size() && heap_.size() > 64) sweep();
}

void VirtualLoop::watch(int, Readiness, IoCallback) { TS_CHECK(false, "virtual time has no file descriptors"); }
void VirtualLoop::rewatch(int, Readiness) { TS_CHECK(false, "virtual time has no file descriptors"); }
void VirtualLoop::unwatch(int) { TS_CHECK(false, "virtual time has no file descriptors"); }

void VirtualLoop::run_until(TimeNs t) {
  stopped_ = false;
  while (!stopped_ && !heap_.empty() && heap_.front().t <= t) {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Instant instant = heap_.back();
    heap_.pop_back();
    if (!is_live(instant)) {
      --cancelled_;
      continue;
    }
    Callback fn = take(instant.slot);
    now_ = instant.t;
    fn();
  }
  if (!stopped_ && t != kNever) now_ = std::max(now_, t);
}

/// Empties a slot for its next use; generation 0 is skipped so that a TimerId is never zero.
Loop::Callback VirtualLoop::take(std::uint32_t slot) {
  Callback fn = std::move(slots_[slot].fn);
  slots_[slot].fn = nullptr;
  if (++slots_[slot].generation == 0) slots_[slot].generation = 1;
  free_slots_.push_back(slot);
  return fn;
}

void VirtualLoop::sweep() {
  std::erase_if(heap_, [this](const Instant& instant) { return !is_live(instant); });
  std::make_heap(heap_.begin(), heap_.end(), Later{});
  cancelled_ = 0;
}

}  // namespace tokenstone
