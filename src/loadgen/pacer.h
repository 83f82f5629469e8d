// Decides when which request is sent. Pure: time is passed in, nothing is read or waited for.
//
// Open loop: every request has its instant, made before the start; a late request is sent at once and its instant stays
// what it was, so the schedule never drifts and lateness is visible as sent - intended. A cap on concurrency holds
// requests back in order; what it costs is visible the same way. Closed loop: a request's instant is the moment its
// slot became free. Times: ns from the run's start. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/types.h"

namespace tokenstone::loadgen {

struct PacerOptions {
  std::vector<TimeNs> intended;  ///< open loop: ascending instants, one per request
  std::vector<TimeNs> expires;   ///< empty, or per request: never sent at or after this instant (the end of its stage)
  bool closed_loop = false;      ///< needs max_concurrency; `intended` is not used
  std::uint64_t total = 0;       ///< closed loop: requests to send at most
  std::optional<std::uint32_t> max_concurrency;
  TimeNs stop_at = kNever;  ///< by duration: nothing is sent at or after this instant
};

class Pacer {
 public:
  struct Due {
    std::uint32_t index;
    TimeNs intended;
    bool waited_for_slot;  ///< the cap, not the client, made it late
  };

  explicit Pacer(PacerOptions options);

  /// Appends the requests that must be sent now; each takes a slot until on_finished.
  void poll(TimeNs now, std::vector<Due>& due);
  /// When to poll next if nothing finishes before; kNever when only a finish can bring more.
  TimeNs next_deadline() const;
  void on_finished(TimeNs now);
  /// Nothing is sent any more; what is left counts as unsent.
  void stop();
  /// True when poll will never give another request.
  bool exhausted(TimeNs now) const;

  std::uint32_t in_flight() const { return in_flight_; }
  std::uint64_t issued() const { return issued_; }

 private:
  bool has_slot() const { return !options_.max_concurrency || in_flight_ < *options_.max_concurrency; }
  bool expired(TimeNs now) const;
  void poll_open(TimeNs now, std::vector<Due>& due);
  void poll_closed(TimeNs now, std::vector<Due>& due);

  PacerOptions options_;
  std::size_t next_ = 0;
  TimeNs full_until_ = INT64_MIN;  // when a slot last became free after all had been taken
  std::uint32_t in_flight_ = 0;
  std::uint64_t issued_ = 0;
  bool stopped_ = false;
  std::deque<TimeNs> free_slots_;  // closed loop: since when each free slot has been free
};

}  // namespace tokenstone::loadgen
