// Sixteen floats in plain C++: the fallback for every CPU, and what the vector versions are tested against.
// Include only from a kernels_*.cc file. All names have internal linkage.
#pragma once

#include <math.h>

#include "kernels/bf16.h"

namespace tokenstone::kernels {
namespace {

struct ScalarLanes {
  struct F {
    float v[16];
  };
  struct Pairs {
    std::uint32_t v[16];
  };
  static constexpr int kFewRows = 0;       ///< up to so many rows four panels go at once
  static constexpr int kWideRows = 2;      ///< rows of a tile of two panels
  static constexpr int kScoreGroups = 1;   ///< token groups scored at once
  static constexpr int kValueVectors = 1;  ///< vectors of V summed at once

  template <class Op>
  static F each(Op op) {
    F r;
    for (int i = 0; i < 16; ++i) r.v[i] = op(i);
    return r;
  }
  static F set1(float x) {
    return each([&](int) { return x; });
  }
  static F zero() { return set1(0.0f); }
  static F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, F x) {
    for (int i = 0; i < 16; ++i) p[i] = x.v[i];
  }
  static F load(const Bf16* p) {
    return each([&](int i) { return to_float(p[i]); });
  }
  static void store(Bf16* p, F x) {
    for (int i = 0; i < 16; ++i) p[i] = to_bf16(x.v[i]);
  }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static F max(F a, F b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F min(F a, F b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  /// Not fused: without an instruction for it a fused product would be a library call per lane.
  static F fmadd(F a, F b, F c) { return add(mul(a, b), c); }
  static F round(F a) {
    return each([&](int i) { return rintf(a.v[i]); });
  }
  /// a * 2^n for whole n in [-126, 127].
  static F scale2(F a, F n) {
    return each([&](int i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.v[i]) + 127) << 23;
      float power;
      std::memcpy(&power, &bits, sizeof power);
      return a.v[i] * power;
    });
  }
  /// Lanes with x < bound become zero.
  static F zero_below(F x, float bound, F a) {
    return each([&](int i) { return x.v[i] < bound ? 0.0f : a.v[i]; });
  }
  /// Lanes from `n` on become `fill`.
  static F keep_first(F a, int n, float fill) {
    return each([&](int i) { return i < n ? a.v[i] : fill; });
  }
  static float reduce_add(F a) {
    for (int width = 8; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
    return a.v[0];
  }
  static float reduce_max(F a) {
    float best = a.v[0];
    for (int i = 1; i < 16; ++i) best = a.v[i] > best ? a.v[i] : best;
    return best;
  }
  static Pairs load_pairs(const Bf16* p) {
    Pairs r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static Pairs broadcast_pair(const Bf16* p) {
    std::uint32_t bits;
    std::memcpy(&bits, p, sizeof bits);
    Pairs r;
    for (int i = 0; i < 16; ++i) r.v[i] = bits;
    return r;
  }
  static float low(std::uint32_t pair) { return to_float(Bf16{static_cast<std::uint16_t>(pair)}); }
  static float high(std::uint32_t pair) { return to_float(Bf16{static_cast<std::uint16_t>(pair >> 16)}); }
  static F dot_pairs(F c, Pairs w, Pairs a) {
    return each([&](int i) { return c.v[i] + low(w.v[i]) * low(a.v[i]) + high(w.v[i]) * high(a.v[i]); });
  }
};

}  // namespace
}  // namespace tokenstone::kernels
