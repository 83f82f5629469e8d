#include "engine/rope_table.h"

#include <cmath>

namespace tokenstone::engine {

RopeTable::RopeTable(std::size_t head_dim, double theta) : half_(head_dim / 2) {
  for (std::size_t i = 0; i < half_; ++i)
    frequencies_.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
}

void RopeTable::reserve(std::size_t max_position) {
  std::size_t position = values_.size() / (2 * half_);
  if (position > max_position) return;
  values_.reserve(2 * half_ * std::max(max_position + 1, 2 * position));
  for (; position <= max_position; ++position) {
    for (const double f : frequencies_)
      values_.push_back(static_cast<float>(std::cos(static_cast<double>(position) * f)));
    for (const double f : frequencies_)
      values_.push_back(static_cast<float>(std::sin(static_cast<double>(position) * f)));
  }
}

}  // namespace tokenstone::engine
