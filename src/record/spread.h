// Mean and spread of each metric over repeated runs (`--num-runs N`).
//
// Ownership: plain values. Threads: any. Units: those of the metric. Failure: none; a metric that a run does not have
// is counted in `n` only where it was measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/metrics.h"

namespace tokenstone::record {

struct Spread {
  std::uint64_t n = 0;
  double mean = 0;
  double std = 0;  ///< population, as vLLM's
  double min = 0, max = 0;
  std::optional<double> cv;  ///< std / mean; none for a mean of 0
};

/// Keys: the scalars' keys, and `{mean,median,p90,p99}_KEY` of the distributions in the descriptor's unit.
std::map<std::string, Spread> spread_of(const std::vector<MetricSet>& runs);

}  // namespace tokenstone::record
