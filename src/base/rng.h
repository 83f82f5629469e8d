// Counter-based random numbers: a number is a pure function of (seed, stream, counter), so that arrivals, lengths,
// prompts and sampling each have a stream of their own and no draw depends on how many others were made before.
//
// Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// The distributions are written out here because those of <random> differ between standard libraries.
#pragma once

#include <array>
#include <cstdint>

namespace tokenstone {

/// One Philox4x32-10 block: 128 random bits from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The `position`-th uniform number in [0, 1) of (seed, stream); 53 bits.
double uniform_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

class Rng {
 public:
  /// Streams with different numbers are independent; name them with the enumeration below.
  Rng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  /// [0, 1), 53 bits.
  double uniform();
  /// Integer in [lo, hi], without bias. Precondition: lo <= hi.
  std::int64_t uniform_int(std::int64_t lo, std::int64_t hi);
  /// Mean 1.
  double exponential();
  /// Mean 0, variance 1 (Marsaglia's polar method).
  double normal();
  /// Gamma with the given shape and scale 1 (Marsaglia and Tsang 2000). Precondition: shape > 0.
  double gamma(double shape);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> buffer_{};
  unsigned used_ = 4;
  bool has_spare_normal_ = false;
  double spare_normal_ = 0;
};

/// One stream per random dimension; the numbers are part of the reproducibility contract and never change.
namespace streams {
inline constexpr std::uint64_t arrivals = 1;
inline constexpr std::uint64_t lengths = 2;
inline constexpr std::uint64_t prompts = 3;
inline constexpr std::uint64_t sampling = 4;
inline constexpr std::uint64_t weights = 5;
inline constexpr std::uint64_t request_ids = 6;
inline constexpr std::uint64_t shuffle = 7;
inline constexpr std::uint64_t warmup = 8;
inline constexpr std::uint64_t classes = 9;
}  // namespace streams

}  // namespace tokenstone
