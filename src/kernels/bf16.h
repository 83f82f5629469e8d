// bfloat16 as the engine stores it: the upper half of a float, rounded to nearest even.
// Plain values; no ownership, any thread, no failure. NaN stays NaN.
#pragma once

#include <cstdint>
#include <cstring>

namespace tokenstone::kernels {

struct Bf16 {
  std::uint16_t bits = 0;
};

// `static`: each translation unit keeps its own copy, compiled for its own instruction set.
static inline float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}
static inline float to_float(float value) { return value; }

static inline Bf16 to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace tokenstone::kernels
