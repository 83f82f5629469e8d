// Sixteen floats as two AVX registers. Include only from kernels_avx2.cc.
#pragma once

#include <immintrin.h>

#include "kernels/bf16.h"

namespace tokenstone::kernels {
namespace {

struct Avx2Lanes {
  struct F {
    __m256 a, b;
  };
  struct Pairs {
    __m256i a, b;
  };
  static constexpr int kFewRows = 1;   ///< up to so many rows four panels go at once
  static constexpr int kWideRows = 2;  ///< rows of a tile of two panels
  static constexpr int kScoreGroups = 1;
  static constexpr int kValueVectors = 1;

  static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static __m256 widen(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static F load(const Bf16* p) {
    return {widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static __m256i rounded(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
  }
  static void store(Bf16* p, F x) {
    const __m256i packed = _mm256_packus_epi32(rounded(x.a), rounded(x.b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static F fmadd(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  static F round(F x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
  }
  static __m256 power2(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static F scale2(F x, F n) { return {_mm256_mul_ps(x.a, power2(n.a)), _mm256_mul_ps(x.b, power2(n.b))}; }
  static F zero_below(F x, float bound, F y) {
    const __m256 limit = _mm256_set1_ps(bound);
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, limit, _CMP_LT_OQ), y.a),
            _mm256_andnot_ps(_mm256_cmp_ps(x.b, limit, _CMP_LT_OQ), y.b)};
  }
  static F keep_first(F x, int n, float fill) {
    const __m256 value = _mm256_set1_ps(fill);
    const __m256i count = _mm256_set1_epi32(n);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i upper = _mm256_add_epi32(lanes, _mm256_set1_epi32(8));
    return {_mm256_blendv_ps(value, x.a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, lanes))),
            _mm256_blendv_ps(value, x.b, _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, upper)))};
  }
  static float reduce_add(F x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static float reduce_max(F x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static Pairs load_pairs(const Bf16* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
  }
  static Pairs broadcast_pair(const Bf16* p) {
    std::int32_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return {_mm256_set1_epi32(bits), _mm256_set1_epi32(bits)};
  }
  static __m256 low(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static __m256 high(__m256i pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static F dot_pairs(F c, Pairs w, Pairs x) {
    c = {_mm256_fmadd_ps(low(w.a), low(x.a), c.a), _mm256_fmadd_ps(low(w.b), low(x.b), c.b)};
    return {_mm256_fmadd_ps(high(w.a), high(x.a), c.a), _mm256_fmadd_ps(high(w.b), high(x.b), c.b)};
  }
};

}  // namespace
}  // namespace tokenstone::kernels
