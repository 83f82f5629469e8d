// Sixteen floats as one AVX-512 register; with __AVX512BF16__ pairs of bf16 are multiplied by the instruction for it
// (which takes denormals as zero and rounds each pair's sum its own way). Include only from kernels_avx512*.cc.
#pragma once

#include <immintrin.h>

#include "kernels/bf16.h"

namespace tokenstone::kernels {
namespace {

struct Avx512Lanes {
  using F = __m512;
  using Pairs = __m512i;
  // At most 16 accumulators: with more GCC 12 spills.
  static constexpr int kFewRows = 4;   ///< up to so many rows four panels go at once
  static constexpr int kWideRows = 8;  ///< rows of a tile of two panels
  static constexpr int kScoreGroups = 4;
  static constexpr int kValueVectors = 4;

  static F set1(float x) { return _mm512_set1_ps(x); }
  static F zero() { return _mm512_setzero_ps(); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load(const Bf16* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
  static void store(Bf16* p, F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
  }
  static F add(F x, F y) { return _mm512_add_ps(x, y); }
  static F sub(F x, F y) { return _mm512_sub_ps(x, y); }
  static F mul(F x, F y) { return _mm512_mul_ps(x, y); }
  static F div(F x, F y) { return _mm512_div_ps(x, y); }
  static F max(F x, F y) { return _mm512_max_ps(x, y); }
  static F min(F x, F y) { return _mm512_min_ps(x, y); }
  static F fmadd(F x, F y, F z) { return _mm512_fmadd_ps(x, y, z); }
  static F round(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F scale2(F x, F n) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_mul_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23)));
  }
  static F zero_below(F x, float bound, F y) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_NLT_UQ), y);
  }
  static F keep_first(F x, int n, float fill) {
    const __mmask16 keep = n >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n < 0 ? 0 : n)) - 1u);
    return _mm512_mask_mov_ps(_mm512_set1_ps(fill), keep, x);
  }
  static float reduce_add(F x) { return _mm512_reduce_add_ps(x); }
  static float reduce_max(F x) { return _mm512_reduce_max_ps(x); }
  static Pairs load_pairs(const Bf16* p) { return _mm512_loadu_si512(p); }
  static Pairs broadcast_pair(const Bf16* p) {
    std::int32_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return _mm512_set1_epi32(bits);
  }
  static F dot_pairs(F c, Pairs w, Pairs x) {
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
#else
    const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    const auto low = [](__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); };
    const auto high = [&](__m512i pairs) { return _mm512_castsi512_ps(_mm512_and_si512(pairs, mask)); };
    return _mm512_fmadd_ps(high(w), high(x), _mm512_fmadd_ps(low(w), low(x), c));
#endif
  }
};

}  // namespace
}  // namespace tokenstone::kernels
