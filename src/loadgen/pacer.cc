#include "loadgen/pacer.h"

#include <algorithm>

#include "base/check.h"

namespace tokenstone::loadgen {

Pacer::Pacer(PacerOptions options) : options_(std::move(options)) {
  TS_CHECK(std::is_sorted(options_.intended.begin(), options_.intended.end()), "the schedule must ascend");
  TS_CHECK(options_.expires.empty() || options_.expires.size() == options_.intended.size(), "one expiry per request");
  if (!options_.closed_loop) return;
  TS_CHECK(options_.max_concurrency.has_value(), "a closed loop needs a cap");
  free_slots_.assign(*options_.max_concurrency, 0);
}

bool Pacer::expired(TimeNs now) const {
  return now >= options_.stop_at || (!options_.expires.empty() && now >= options_.expires[next_]);
}

void Pacer::poll(TimeNs now, std::vector<Due>& due) {
  if (stopped_) return;
  options_.closed_loop ? poll_closed(now, due) : poll_open(now, due);
}

void Pacer::poll_open(TimeNs now, std::vector<Due>& due) {
  for (; next_ < options_.intended.size() && options_.intended[next_] <= now; ++next_) {
    if (expired(now)) continue;
    if (!has_slot()) return;
    const TimeNs intended = options_.intended[next_];
    due.push_back({static_cast<std::uint32_t>(next_), intended, intended < full_until_});
    ++in_flight_;
    ++issued_;
  }
}

void Pacer::poll_closed(TimeNs now, std::vector<Due>& due) {
  while (!free_slots_.empty() && next_ < options_.total && now < options_.stop_at) {
    due.push_back({static_cast<std::uint32_t>(next_++), free_slots_.front(), false});
    free_slots_.pop_front();
    ++in_flight_;
    ++issued_;
  }
}

TimeNs Pacer::next_deadline() const {
  if (stopped_ || options_.closed_loop || next_ >= options_.intended.size()) return kNever;
  if (has_slot()) return options_.intended[next_];
  return options_.expires.empty() ? options_.stop_at : std::min(options_.stop_at, options_.expires[next_]);
}

void Pacer::on_finished(TimeNs now) {
  TS_CHECK(in_flight_ > 0, "a request finished that was not in flight");
  if (!has_slot()) full_until_ = now;
  --in_flight_;
  if (options_.closed_loop) free_slots_.push_back(now);
}

void Pacer::stop() { stopped_ = true; }

bool Pacer::exhausted(TimeNs now) const {
  if (stopped_ || now >= options_.stop_at) return true;
  return options_.closed_loop ? next_ >= options_.total : next_ >= options_.intended.size();
}

}  // namespace tokenstone::loadgen
