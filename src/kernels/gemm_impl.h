// Packed GEMM. A tile is R rows by P panels; each (row, panel) has one accumulator that runs through K in order,
// whatever R and P are: so a row's result does not depend on how many rows came with it. Include only from
// kernels_*.cc.
#pragma once

#include "kernels/rows_impl.h"

namespace tokenstone::kernels {
namespace {

/// One 64-byte row of a panel against the activations that belong to it.
template <class L, class T>
struct Dot;

template <class L>
struct Dot<L, float> {
  using Weights = typename L::F;
  static constexpr std::size_t kPerWord = 1;
  static Weights weights(const float* p) { return L::load(p); }
  static Weights activation(const float* p) { return L::set1(*p); }
  static typename L::F step(typename L::F c, Weights w, Weights a) { return L::fmadd(w, a, c); }
};

template <class L>
struct Dot<L, Bf16> {
  using Weights = typename L::Pairs;
  static constexpr std::size_t kPerWord = 2;
  static Weights weights(const Bf16* p) { return L::load_pairs(p); }
  static Weights activation(const Bf16* p) { return L::broadcast_pair(p); }
  static typename L::F step(typename L::F c, Weights w, Weights a) { return L::dot_pairs(c, w, a); }
};

template <class L, class T, int R, int P>
void finish_tile(const GemmCall<T>& call, std::size_t row, std::size_t panel, typename L::F (&sum)[R][P]) {
  if (call.epilogue == Epilogue::silu_mul) {
    if constexpr (P % 2 == 0) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < P; p += 2)
          L::store(call.act + (row + r) * call.ldo + (panel + p) / 2 * kPanel,
                   L::mul(silu_lanes<L>(sum[r][p]), sum[r][p + 1]));
    }
    return;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float* out = call.out + (row + r) * call.ldo + (panel + p) * kPanel;
      L::store(out, call.epilogue == Epilogue::add ? L::add(L::load(out), sum[r][p]) : sum[r][p]);
    }
}

/// Not inlined: each tile gets the registers to itself.
template <class L, class T, int R, int P>
__attribute__((noinline)) void gemm_tile(const GemmCall<T>& call, std::size_t row, std::size_t panel) {
  using D = Dot<L, T>;
  constexpr std::size_t kRow = kPanel * D::kPerWord;
  const std::size_t words = call.k / D::kPerWord;
  const T* w = call.w + panel * words * kRow;
  const T* a = call.a + row * call.lda;
  const std::size_t lda = call.lda, panel_stride = words * kRow;
  typename L::F sum[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sum[r][p] = L::zero();
  for (std::size_t i = 0; i < words; ++i) {
    typename D::Weights weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) weights[p] = D::weights(w + p * panel_stride + i * kRow);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto activation = D::activation(a + r * lda + i * D::kPerWord);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sum[r][p] = D::step(sum[r][p], weights[p], activation);
    }
  }
  finish_tile<L, T, R, P>(call, row, panel, sum);
}

/// `count` rows (1 .. R) by P panels.
template <class L, class T, int R, int P>
void gemm_rows(const GemmCall<T>& call, std::size_t row, std::size_t count, std::size_t panel) {
  if (count == R) return gemm_tile<L, T, R, P>(call, row, panel);
  if constexpr (R > 1) gemm_rows<L, T, R - 1, P>(call, row, count, panel);
}

/// All rows for P panels, R rows at a time: the panels stay in the near cache while the rows go by.
template <class L, class T, int R, int P>
void gemm_panels(const GemmCall<T>& call, std::size_t panel) {
  for (std::size_t row = 0; row < call.rows; row += R)
    gemm_rows<L, T, R, P>(call, row, call.rows - row < R ? call.rows - row : R, panel);
}

template <class L, class T, int R, int P>
std::size_t gemm_range(const GemmCall<T>& call, std::size_t panel) {
  for (; panel + P <= call.panel_end; panel += P) gemm_panels<L, T, R, P>(call, panel);
  return panel;
}

/// Few rows: four panels at once, so that several streams of weights are in flight. Else two panels by many rows, and
/// the odd panel alone.
template <class L, class T>
void gemm(const GemmCall<T>& call) {
  std::size_t panel = call.panel_begin;
  if constexpr (L::kFewRows > 0)
    if (call.rows <= L::kFewRows) panel = gemm_range<L, T, L::kFewRows, 4>(call, panel);
  panel = gemm_range<L, T, L::kWideRows, 2>(call, panel);
  gemm_range<L, T, L::kWideRows, 1>(call, panel);
}

}  // namespace
}  // namespace tokenstone::kernels
