// The server's Prometheus page (text format 0.0.4), under vLLM's metric names and with vLLM's histogram buckets.
//
// Counters and gauges of the engine come from its EngineStats, request histograms from what the server observed.
// Threads: the I/O thread. Units: seconds and tokens. Failure: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "runtime/engine_loop.h"
#include "server/served_model.h"

namespace tokenstone::server {

class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds);
  void observe(double value);
  std::uint64_t count() const { return count_; }
  /// `name{LABELS,le="..."}` lines with cumulative counts, then _count and _sum.
  void append(std::string& page, std::string_view name, std::string_view labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  ///< one more than bounds: above the last
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

class ServerMetrics {
 public:
  explicit ServerMetrics(const ServedModel& model);
  /// A step brought this request's first tokens; `waited` since its body was complete.
  void first_token(TimeNs waited);
  void next_tokens(TimeNs gap);
  /// A sequence ended by itself; `received` is when its body was complete.
  void finished(const runtime::EngineTiming& timing, TimeNs received, TimeNs first_token, sched::FinishReason reason);
  void aborted() { ++aborted_; }
  std::string page(const runtime::EngineStats& stats) const;

 private:
  std::string labels_, cache_labels_;
  Histogram ttft_, itl_, tpot_, e2e_, queue_, prefill_, decode_, inference_, prompt_tokens_, generation_tokens_;
  std::uint64_t stopped_ = 0, length_ = 0, aborted_ = 0, errors_ = 0;
};

}  // namespace tokenstone::server
