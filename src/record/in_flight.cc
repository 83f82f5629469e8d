#include "record/in_flight.h"

namespace tokenstone::record {

InFlight in_flight(const RunResult& run) {
  InFlight result;
  std::vector<std::pair<TimeNs, int>> changes;
  double open_ns = 0;
  for (const RequestRecord& r : run.requests) {
    if (!r.was_sent() || r.finished == kUnknownTime) continue;
    changes.emplace_back(r.sent, +1);
    changes.emplace_back(r.finished, -1);
    const TimeNs from = std::max(r.sent, run.window_start), to = std::min(r.finished, run.window_end);
    if (to > from) open_ns += static_cast<double>(to - from);
  }
  result.any = !changes.empty();
  std::sort(changes.begin(), changes.end());  // at the same instant ends (-1) come before starts
  std::int64_t open = 0;
  for (const auto& [time, change] : changes) {
    open += change;
    if (open > 0) result.peak = std::max(result.peak, static_cast<std::uint64_t>(open));
  }
  const TimeNs window = run.window_end - run.window_start;
  if (result.any && window > 0) result.mean = open_ns / static_cast<double>(window);
  return result;
}

std::optional<double> peak_tokens_per_second(const RunResult& run) {
  std::map<TimeNs, double> seconds;
  for (const RequestRecord& r : run.requests) {
    if (!r.succeeded() || r.output_len < 0 || r.events.empty()) continue;
    std::int64_t known = 0;
    bool unknown = false;
    for (const TokenEvent& event : r.events) {
      unknown |= event.tokens < 0;
      known += event.tokens;
    }
    const bool by_event = !unknown && known == r.output_len;
    const double share = static_cast<double>(r.output_len) / static_cast<double>(r.events.size());
    for (const TokenEvent& event : r.events) {
      if (event.arrived < run.window_start || event.arrived > run.window_end) continue;
      seconds[(event.arrived - run.window_start) / kSecond] += by_event ? event.tokens : share;
    }
  }
  std::optional<double> peak;
  for (const auto& [second, tokens] : seconds) peak = std::max(peak.value_or(0), tokens);
  return peak;
}

}  // namespace tokenstone::record
