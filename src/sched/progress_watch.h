// The guard against a livelock: work is there, steps go by, and no sequence gets a token.
//
// The bound holds because the oldest running sequence is never preempted: in steps that sample nothing there are no
// decodes, so the oldest gets its full chunk each time and has its first token after ceil(longest / chunk) steps.
#pragma once

#include <cstdint>

namespace tokenstone::sched {

class ProgressWatch {
 public:
  ProgressWatch(std::uint32_t longest_sequence, std::uint32_t chunk)
      : limit_((std::uint64_t{longest_sequence} + chunk - 1) / chunk + kSlack) {}
  void on_step() { ++steps_; }
  /// A token was sampled, or a sequence left.
  void on_progress() { steps_ = 0; }
  bool stuck() const { return steps_ > limit_; }
  std::uint64_t limit() const { return limit_; }

 private:
  static constexpr std::uint64_t kSlack = 8;
  std::uint64_t limit_;
  std::uint64_t steps_ = 0;
};

}  // namespace tokenstone::sched
