// cos and sin of every position that was met so far: angle(p, i) = p / theta^(2i / head_dim), i in [0, head_dim/2).
// Source: Su et al., "RoFormer", 2021. Threads: `reserve` alone, then read by all. No failure.
#pragma once

#include <vector>

namespace tokenstone::engine {

class RopeTable {
 public:
  RopeTable(std::size_t head_dim, double theta);
  /// Makes positions [0, max_position] available.
  void reserve(std::size_t max_position);
  const float* cos(std::size_t position) const { return values_.data() + position * 2 * half_; }
  const float* sin(std::size_t position) const { return cos(position) + half_; }

 private:
  std::size_t half_;
  std::vector<double> frequencies_;
  std::vector<float> values_;  ///< [position][cos of each pair, sin of each pair]
};

}  // namespace tokenstone::engine
