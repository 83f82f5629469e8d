// The numbers of a run, computed once from its records. Definitions: metric_table.h and docs/methodology.md.
//
// Ownership: plain values. Threads: any, one MetricSet by one thread at a time (quantiles sort on demand).
// Units: those of the descriptor (latencies in ms). Failure: none; what was not measured is absent, never 0.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/metric_table.h"
#include "record/run.h"
#include "stats/sample.h"

namespace tokenstone::record {

/// Failed requests of one kind.
struct ErrorCount {
  ErrorClass error_class = ErrorClass::none;
  int http_status = 0;  ///< kept apart for `http_status`
  std::uint64_t count = 0;
  TimeNs first = kUnknownTime, last = kUnknownTime;
  std::string sample;  ///< the first one's line
};

class MetricSet {
 public:
  /// An empty sample when nothing was measured.
  const stats::Sample& sample(std::string_view key) const;
  std::optional<double> value(std::string_view key) const;
  std::uint64_t count(std::string_view key) const { return static_cast<std::uint64_t>(value(key).value_or(0)); }
  void set(std::string_view key, double value);
  void set(std::string_view key, stats::Sample sample);

  std::uint64_t planned = 0, sent = 0;
  std::uint64_t good = 0;                                ///< within every limit of --goodput, drain included
  std::vector<ErrorCount> errors;                        ///< most frequent first
  std::map<LengthSource, std::uint64_t> length_sources;  ///< of completed requests

 private:
  std::map<std::string, stats::Sample, std::less<>> samples_;
  std::map<std::string, double, std::less<>> values_;
};

MetricSet compute_metrics(const RunResult& run);

/// One request's values in ms; nothing where it has none. Failed requests have none.
std::optional<double> request_value(const RequestRecord& request, const Limit& limit);
/// Within every limit. Precondition: the request succeeded.
bool within_limits(const RequestRecord& request, const std::vector<Limit>& limits);

/// The rate asked for: request_rate, the stages' mean, or the schedule's own; nothing without one.
std::optional<double> offered_rate(const RunResult& run);

}  // namespace tokenstone::record
