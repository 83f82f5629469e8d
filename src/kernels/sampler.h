// From logits to the next token: greedy, or drawn after temperature, min-p, top-k and top-p.
//
// Contract: a function of the logits, the settings, the seed and the position alone; equal for every batch.
// Rules, in this order (as vLLM's sampler): divide by the temperature; min-p keeps tokens with at least min_p times the
// top probability; top-k keeps the k likeliest; top-p keeps the shortest head of them whose mass reaches top_p. Ties go
// to the lower id. Then the inverse of the cumulative mass at one uniform number. Ownership: a Sampler holds scratch
// memory. Threads: one at a time each. Failure: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "kernels/kernels.h"

namespace tokenstone::kernels {

struct SampleSettings {
  double temperature = 1.0;  ///< 0: greedy
  double top_p = 1.0;
  std::int32_t top_k = 0;  ///< 0 or negative: all
  double min_p = 0.0;
  std::uint64_t seed = 0;
  std::uint64_t position = 0;  ///< place of the new token in its sequence
};

class Sampler {
 public:
  explicit Sampler(const Kernels& kernels) : kernels_(kernels) {}
  /// Precondition: logits not empty.
  TokenId sample(std::span<const float> logits, const SampleSettings& settings);

 private:
  TokenId draw_from_all(double uniform) const;
  TokenId draw_from_kept(double uniform) const;
  void keep_likeliest(const SampleSettings& settings);

  const Kernels& kernels_;
  std::vector<float> weight_;  ///< exp((logit - top) / temperature) per id
  double total_ = 0;
  std::vector<TokenId> kept_;  ///< likeliest first
  double kept_total_ = 0;
};

}  // namespace tokenstone::kernels
