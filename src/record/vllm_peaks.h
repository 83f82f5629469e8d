// The two peak figures by vLLM's own rules (calculate_metrics of `vllm bench serve`), kept for whoever compares files.
// They count events for tokens and touched seconds for concurrency; in_flight.h has the exact ones.
//
// Ownership: plain values. Threads: any. Units: seconds in the rules, counts in the results. Failure: none.
#pragma once

#include <cstdint>
#include <vector>

#include "record/records.h"

namespace tokenstone::record {

struct VllmPeaks {
  bool any = false;  ///< a request succeeded
  double max_output_tokens_per_s = 0;
  std::uint64_t max_concurrent_requests = 0;
};

VllmPeaks vllm_peaks(const std::vector<RequestRecord>& requests);

}  // namespace tokenstone::record
