// Kernels over one row: exponential, SiLU, RMSNorm, RoPE, storing K and V, argmax. Written once over a Lanes type;
// include only from kernels_*.cc. All names have internal linkage, so each file keeps the code that was compiled for
// it.
#pragma once

#include <math.h>

#include "kernels/kernels.h"

namespace tokenstone::kernels {
namespace {

inline constexpr std::size_t kMaxHeadDim = 256;

/// exp(x) with a relative error below 2e-7; zero below -87.3 (and for -inf), at most exp(88).
/// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; exp(r) by its series to r^6 with Cephes' coefficients.
template <class L>
typename L::F exp_lanes(typename L::F x) {
  using F = typename L::F;
  constexpr float kLowest = -87.3f;
  const F clamped = L::max(L::min(x, L::set1(88.0f)), L::set1(kLowest));
  const F n = L::round(L::mul(clamped, L::set1(1.44269504f)));
  F r = L::fmadd(n, L::set1(-0.693359375f), clamped);
  r = L::fmadd(n, L::set1(2.12194440e-4f), r);
  F p = L::set1(1.9875691500e-4f);
  p = L::fmadd(p, r, L::set1(1.3981999507e-3f));
  p = L::fmadd(p, r, L::set1(8.3334519073e-3f));
  p = L::fmadd(p, r, L::set1(4.1665795894e-2f));
  p = L::fmadd(p, r, L::set1(1.6666665459e-1f));
  p = L::fmadd(p, r, L::set1(5.0000001201e-1f));
  p = L::fmadd(p, L::mul(r, r), L::add(r, L::set1(1.0f)));
  return L::zero_below(x, kLowest, L::scale2(p, n));
}

template <class L>
typename L::F silu_lanes(typename L::F x) {
  const auto denominator = L::add(L::set1(1.0f), exp_lanes<L>(L::sub(L::zero(), x)));
  return L::div(x, denominator);
}

/// The last, incomplete vector of a row; lanes from `n` on hold `fill`.
template <class L, class T>
typename L::F load_tail(const T* p, std::size_t n, T fill) {
  T buffer[kPanel];
  for (std::size_t i = 0; i < kPanel; ++i) buffer[i] = i < n ? p[i] : fill;
  return L::load(buffer);
}

template <class L, class T>
void store_tail(T* p, std::size_t n, typename L::F x) {
  T buffer[kPanel];
  L::store(buffer, x);
  for (std::size_t i = 0; i < n; ++i) p[i] = buffer[i];
}

template <class L, class T>
void rms_norm(const float* x, const float* weight, float eps, std::size_t n, T* out) {
  using F = typename L::F;
  const std::size_t whole = n / kPanel * kPanel;
  F sum = L::zero();
  for (std::size_t i = 0; i < whole; i += kPanel) {
    const F v = L::load(x + i);
    sum = L::fmadd(v, v, sum);
  }
  if (whole < n) {
    const F v = load_tail<L, float>(x + whole, n - whole, 0.0f);
    sum = L::fmadd(v, v, sum);
  }
  const F scale = L::set1(1.0f / sqrtf(L::reduce_add(sum) / static_cast<float>(n) + eps));
  for (std::size_t i = 0; i < whole; i += kPanel)
    L::store(out + i, L::mul(L::mul(L::load(x + i), scale), L::load(weight + i)));
  if (whole < n) {
    const F v = load_tail<L, float>(x + whole, n - whole, 0.0f);
    const F w = load_tail<L, float>(weight + whole, n - whole, 0.0f);
    store_tail<L, T>(out + whole, n - whole, L::mul(L::mul(v, scale), w));
  }
}

static inline void put(float* p, float x) { *p = x; }
static inline void put(Bf16* p, float x) { *p = to_bf16(x); }

template <class L, class T>
void rope_query(const float* query, const float* cos, const float* sin, std::size_t head_dim, T* out) {
  const std::size_t half = head_dim / 2;
  std::size_t i = 0;
  for (; i + kPanel <= half; i += kPanel) {
    const auto a = L::load(query + i), b = L::load(query + half + i), c = L::load(cos + i), s = L::load(sin + i);
    L::store(out + i, L::sub(L::mul(a, c), L::mul(b, s)));
    L::store(out + half + i, L::add(L::mul(a, s), L::mul(b, c)));
  }
  for (; i < half; ++i) {
    const float a = query[i], b = query[i + half];
    put(out + i, a * cos[i] - b * sin[i]);
    put(out + i + half, a * sin[i] + b * cos[i]);
  }
}

/// The key is turned as a row and then spread over its group word by word.
template <class L, class T>
void store_kv(const StoreCall<T>& call) {
  constexpr std::size_t kPerWord = sizeof(float) / sizeof(T);
  const KvView<T>& kv = call.kv;
  T* head = kv.layer + call.block * kv.block_stride() + call.kv_head * kv.head_stride();
  T turned[kMaxHeadDim];
  rope_query<L, T>(call.key, call.cos, call.sin, kv.head_dim, turned);
  T* key = head + call.slot / kTokenGroup * (kTokenGroup * kv.head_dim) + call.slot % kTokenGroup * kPerWord;
  for (std::size_t i = 0; i < kv.head_dim; i += kPerWord)
    __builtin_memcpy(key + i * kTokenGroup, turned + i, sizeof(float));
  T* value = head + kv.block_size * kv.head_dim + call.slot * kv.padded_dim();
  std::size_t i = 0;
  for (; i + kPanel <= kv.head_dim; i += kPanel) L::store(value + i, L::load(call.value + i));
  for (; i < kv.padded_dim(); ++i) put(value + i, i < kv.head_dim ? call.value[i] : 0.0f);
}

/// First the largest value by vectors, then its first place: two reads of the row, no branch in the first.
template <class L>
std::size_t argmax(const float* x, std::size_t n) {
  using F = typename L::F;
  const F lowest = L::set1(-INFINITY);
  const std::size_t whole = n / kPanel * kPanel;
  F best[4] = {lowest, lowest, lowest, lowest};
  std::size_t i = 0;
  for (; i + 4 * kPanel <= whole; i += 4 * kPanel)
    for (std::size_t j = 0; j < 4; ++j) best[j] = L::max(L::load(x + i + j * kPanel), best[j]);
  for (; i < whole; i += kPanel) best[0] = L::max(L::load(x + i), best[0]);
  if (whole < n) best[0] = L::max(load_tail<L, float>(x + whole, n - whole, -INFINITY), best[0]);
  const float top = L::reduce_max(L::max(L::max(best[0], best[1]), L::max(best[2], best[3])));
  for (std::size_t j = 0; j < n; ++j)
    if (x[j] == top) return j;
  return 0;
}

template <class L>
double exp_sum(const float* x, std::size_t n, float shift, float scale, float* out) {
  double total = 0;
  for (std::size_t i = 0; i < n; i += kPanel) {
    const std::size_t count = n - i < kPanel ? n - i : kPanel;
    const auto v = count == kPanel ? L::load(x + i) : load_tail<L, float>(x + i, count, -INFINITY);
    const auto e = exp_lanes<L>(L::mul(L::sub(v, L::set1(shift)), L::set1(scale)));
    store_tail<L, float>(out + i, count, e);
    total += static_cast<double>(L::reduce_add(e));
  }
  return total;
}

}  // namespace
}  // namespace tokenstone::kernels
