// How many requests were open at once, exactly, from their stamps; and the fullest second of output tokens.
//
// Ownership: plain values. Threads: any. Units: ns in, counts out. Failure: none; nothing measured is said so.
#pragma once

#include <cstdint>
#include <optional>

#include "record/run.h"

namespace tokenstone::record {

struct InFlight {
  bool any = false;
  std::uint64_t peak = 0;
  std::optional<double> mean;  ///< over the window's time; none for an empty window
};

/// A request is open in [sent, finished). One that ends where another begins does not overlap it.
InFlight in_flight(const RunResult& run);

/// Output tokens in the fullest one-second bucket from the window's start, completed requests; an event of unknown
/// count stands for an equal share of its request's tokens.
std::optional<double> peak_tokens_per_second(const RunResult& run);

}  // namespace tokenstone::record
