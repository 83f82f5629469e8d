// Seeds of the workload's random dimensions, and the streams of its parts.
//
// Ownership: plain values. Threads: any. Failure: none.
// Every part of a request has a stream that depends on the request's index alone: request 700 is the same whether 699
// others were made before it or none, in whatever order and on however many threads.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace tokenstone::workload {

struct Seeds {
  Seeds() = default;
  explicit Seeds(std::uint64_t all) : run(all), lengths(all), prompts(all), shuffle(all), sampling(all) {}
  std::uint64_t run = 0;       ///< in request ids
  std::uint64_t lengths = 0;   ///< lengths and classes
  std::uint64_t prompts = 0;   ///< what the prompts say
  std::uint64_t shuffle = 0;   ///< order of a data set's rows, and which of them repeat
  std::uint64_t sampling = 0;  ///< per-request sampling seeds
};

/// The stream of one index within a random dimension (`streams::lengths` ...). The dimension itself is index-free.
constexpr std::uint64_t stream_of(std::uint64_t dimension, std::uint64_t index) {
  return dimension + ((index + 1) << 16);
}

/// Another seed for another purpose of the same seed: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t purpose) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15 * (purpose + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace tokenstone::workload
