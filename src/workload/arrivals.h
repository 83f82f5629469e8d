// When requests are sent: a schedule of instants, made before the run from a seed.
//
// Ownership: plain values. Threads: any. Units: rates in requests per second, instants in ns from the run's start.
// Failure: validate() and parse_stages() give one line for a person; make_arrivals needs valid options.
//
// Rules, vLLM's where it has them:
//   gaps     Gamma(shape b, mean 1/rate), b the burstiness: 1 is a Poisson process, infinity a constant rate;
//   first    the first request, too, waits for its gap;
//   by count all instants are multiplied by (N / rate) / (last instant), so that the mean rate is exact;
//            example: rate 2, gaps 0.3 0.9 0.2 s -> 0.3 1.2 1.4, times 1.5/1.4 -> 0.321 1.286 1.5 s;
//   by time  gaps until the duration is over, not rescaled: an exact Poisson process for b = 1;
//   stages   each stage starts anew at its own rate; nothing is carried over from the one before.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::workload {

enum class ArrivalKind {
  burst,        ///< all at once
  constant,     ///< one each 1/rate
  gamma,        ///< random gaps
  stages,       ///< rates one after the other
  trace,        ///< recorded instants
  closed_loop,  ///< a request goes out when a slot becomes free: no instants
};
std::string_view to_string(ArrivalKind kind);

struct Stage {
  double rate = 0;
  TimeNs length = 0;
};

struct ArrivalOptions {
  ArrivalKind kind = ArrivalKind::burst;
  double rate = std::numeric_limits<double>::infinity();
  double burstiness = 1.0;             ///< infinity: constant
  std::optional<std::uint64_t> count;  ///< with a duration as well: whichever ends first
  std::optional<TimeNs> duration;
  std::vector<Stage> stages;
  std::vector<TimeNs> trace;  ///< ascending, from zero (RequestSource::arrivals)
  double speedup = 1.0;       ///< trace: 2 plays it in half the time
  std::uint64_t seed = 0;

  Status validate() const;
};

/// What --request-rate and --burstiness ask for: infinite rate -> burst, infinite burstiness -> constant, else gamma.
ArrivalKind arrival_kind(double rate, double burstiness);

/// "1:30s,5:30s,20:30s": rate:length pairs.
Result<std::vector<Stage>> parse_stages(std::string_view text);

/// Ascending instants. A closed loop has `kUnknownTime` for each of its `count` requests, none without a count.
/// Precondition: validate() passes.
std::vector<TimeNs> make_arrivals(const ArrivalOptions& options);

/// Instants as recorded -> ascending and counted from the earliest; `order[i]` is the row that comes i-th, rows with
/// the same instant in the order they had.
struct OrderedTrace {
  std::vector<TimeNs> times;
  std::vector<std::uint32_t> order;
  std::uint64_t unsorted = 0;  ///< rows that went back in time
};
OrderedTrace order_trace(const std::vector<TimeNs>& recorded);

}  // namespace tokenstone::workload
