#include "record/vllm_peaks.h"

namespace tokenstone::record {
namespace {

bool counts(const RequestRecord& r) { return r.succeeded() && r.was_sent() && r.last_token != kUnknownTime; }

}  // namespace

VllmPeaks vllm_peaks(const std::vector<RequestRecord>& requests) {
  VllmPeaks peaks;
  TimeNs first = kNever, last = kUnknownTime;
  for (const RequestRecord& r : requests) {
    if (!counts(r)) continue;
    first = std::min(first, r.sent);
    last = std::max(last, r.last_token);
  }
  if (first == kNever) return peaks;
  peaks.any = true;
  const auto bucket = [&](TimeNs t) { return static_cast<std::size_t>((t - first) / kSecond); };
  std::vector<double> events(bucket(last) + 1, 0);
  std::vector<std::int64_t> change(bucket(last) + 2, 0);  // of the number of requests that touch a second
  for (const RequestRecord& r : requests) {
    if (!counts(r)) continue;
    if (r.events.empty()) ++events[bucket(r.first_token)];
    for (const TokenEvent& event : r.events) ++events[bucket(std::clamp(event.arrived, first, last))];
    ++change[bucket(r.sent)];
    --change[bucket(r.last_token) + 1];
  }
  peaks.max_output_tokens_per_s = *std::max_element(events.begin(), events.end());
  std::int64_t open = 0;
  for (const std::int64_t step : change) {
    open += step;
    peaks.max_concurrent_requests = std::max(peaks.max_concurrent_requests, static_cast<std::uint64_t>(open));
  }
  return peaks;
}

}  // namespace tokenstone::record
