// A weight matrix [N outputs x K inputs] in the panel layout of kernels.h, on huge pages.
// Ownership: owns its memory. Threads: packing writes panels apart, so panels may be packed by several threads; then
// read-only. Rows past N are zero. Precondition: K even.
#pragma once

#include "base/check.h"
#include "kernels/kernels.h"
#include "kernels/memory.h"

namespace tokenstone::kernels {

template <class T>
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(std::size_t outputs, std::size_t inputs)
      : outputs_(outputs), inputs_(inputs), memory_(panels() * kPanel * inputs * sizeof(T)) {
    TS_CHECK(inputs % 2 == 0, "a packed matrix needs an even number of inputs");
  }

  std::size_t outputs() const { return outputs_; }
  std::size_t inputs() const { return inputs_; }
  std::size_t panels() const { return round_up(outputs_, kPanel) / kPanel; }
  std::size_t bytes() const { return memory_.bytes(); }
  const T* data() const { return memory_.as<T>(); }

  /// `rows`: kPanel rows of K floats, one after the other.
  void pack_panel(std::size_t panel, const float* rows) {
    T* out = memory_.as<T>() + panel * kPanel * inputs_;
    for (std::size_t k = 0; k < inputs_; ++k)
      for (std::size_t lane = 0; lane < kPanel; ++lane) out[offset(lane, k)] = convert(rows[lane * inputs_ + k]);
  }
  /// Row `output` as floats: an embedding that is tied to the head is looked up here.
  void unpack_row(std::size_t output, float* out) const {
    const T* panel = data() + output / kPanel * kPanel * inputs_;
    for (std::size_t k = 0; k < inputs_; ++k) out[k] = to_float(panel[offset(output % kPanel, k)]);
  }

 private:
  static constexpr std::size_t kPerWord = 4 / sizeof(T);  // of a 32-bit word
  static std::size_t offset(std::size_t lane, std::size_t k) {
    return k / kPerWord * (kPanel * kPerWord) + lane * kPerWord + k % kPerWord;
  }
  static T convert(float value) {
    if constexpr (sizeof(T) == sizeof(float)) {
      return value;
    } else {
      return to_bf16(value);
    }
  }

  std::size_t outputs_ = 0;
  std::size_t inputs_ = 0;
  HugeBuffer memory_;
};

}  // namespace tokenstone::kernels
