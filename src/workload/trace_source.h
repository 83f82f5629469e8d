// A trace in memory, ordered by time, as a source of requests. Internal to the module.
//
// Ownership: owns its rows. Threads, units, failure: as in workload/source.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/arrivals.h"
#include "workload/sources.h"

namespace tokenstone::workload {

struct TraceRow {
  std::int64_t input = 0, output = 0;
  std::vector<std::uint64_t> hashes;  ///< one per block of the prompt's beginning; empty: nothing is shared
};

struct Trace {
  std::string name;            ///< azure, mooncake
  std::vector<TraceRow> rows;  ///< as in the file
  std::vector<TimeNs> times;   ///< one per row
  std::int64_t block = 0;      ///< tokens per hash, scale applied
  record::DatasetInfo info;
};

std::unique_ptr<RequestSource> trace_source(const WorkloadOptions& options, ContentPtr content, Trace trace);

/// "12.5 s", "59.9 min": for notes.
std::string span_text(TimeNs span);

}  // namespace tokenstone::workload
