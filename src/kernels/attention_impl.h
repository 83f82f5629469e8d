// Attention over paged K and V.
//
// The tokens of a sequence are cut into tiles of 256, a tile into groups of 16. Each tile gives a partial result of its
// own (largest score m, sum of weights l, weighted sum of V), and the partials are merged in order of the tiles:
//   M = max(m, m'), l = l e^(m-M) + l' e^(m'-M), likewise the sums.
// Nothing depends on the block size (a block is a whole number of groups), on the other queries of the call, or on a
// split of the tiles between threads. Source of the merge: Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018. Include only from kernels_*.cc.
#pragma once

#include "kernels/gemm_impl.h"

namespace tokenstone::kernels {
namespace {

inline constexpr std::size_t kGroupsPerTile = kSoftmaxTile / kTokenGroup;

template <class T>
struct TileGroups {
  const T* key[kGroupsPerTile];
  const T* value[kGroupsPerTile];
  std::size_t count;
};

template <class T>
TileGroups<T> find_groups(const AttentionCall<T>& call, std::size_t first_token, std::size_t end_token) {
  const KvView<T>& kv = call.kv;
  TileGroups<T> groups;
  groups.count = 0;
  for (std::size_t token = first_token; token < end_token; token += kTokenGroup) {
    const std::size_t within = token % kv.block_size;
    const T* head = kv.layer + call.blocks[token / kv.block_size] * kv.block_stride() + call.kv_head * kv.head_stride();
    groups.key[groups.count] = head + within * kv.head_dim;
    groups.value[groups.count] = head + kv.block_size * kv.head_dim + within * kv.padded_dim();
    ++groups.count;
  }
  return groups;
}

/// Scores of NQ queries against G groups, scaled, -inf where a query does not see the token.
template <class L, class T, int NQ, int G>
void score_groups(const AttentionCall<T>& call, const TileGroups<T>& groups, std::size_t group, std::size_t first_token,
                  float (*scores)[kSoftmaxTile]) {
  using D = Dot<L, T>;
  constexpr std::size_t kRow = kTokenGroup * D::kPerWord;
  const std::size_t words = call.kv.head_dim / D::kPerWord;
  typename L::F sum[NQ][G];
#pragma GCC unroll 4
  for (int q = 0; q < NQ; ++q)
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) sum[q][g] = L::zero();
  for (std::size_t i = 0; i < words; ++i) {
    typename D::Weights key[G];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) key[g] = D::weights(groups.key[group + g] + i * kRow);
#pragma GCC unroll 4
    for (int q = 0; q < NQ; ++q) {
      const auto query = D::activation(call.query[q] + i * D::kPerWord);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) sum[q][g] = D::step(sum[q][g], key[g], query);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < NQ; ++q)
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const std::size_t token = first_token + (group + g) * kTokenGroup;
      const int visible = call.context[q] <= token                 ? 0
                          : call.context[q] - token >= kTokenGroup ? static_cast<int>(kTokenGroup)
                                                                   : static_cast<int>(call.context[q] - token);
      const auto scaled = L::mul(sum[q][g], L::set1(call.scale));
      L::store(scores[q] + (group + g) * kTokenGroup, L::keep_first(scaled, visible, -INFINITY));
    }
}

struct TileSum {
  float top;    ///< largest score; -inf: the query sees nothing of this tile
  float total;  ///< sum of exp(score - top)
};

/// Scores become weights.
template <class L>
TileSum soften(float* scores, std::size_t groups) {
  auto top = L::set1(-INFINITY);
  for (std::size_t g = 0; g < groups; ++g) top = L::max(L::load(scores + g * kTokenGroup), top);
  const float largest = L::reduce_max(top);
  // With nothing visible every weight is exp(-inf) = 0; the finite shift avoids inf - inf.
  const auto shift = L::set1(largest == -INFINITY ? 0.0f : largest);
  auto total = L::zero();
  for (std::size_t g = 0; g < groups; ++g) {
    const auto weight = exp_lanes<L>(L::sub(L::load(scores + g * kTokenGroup), shift));
    L::store(scores + g * kTokenGroup, weight);
    total = L::add(total, weight);
  }
  return {largest, L::reduce_add(total)};
}

/// Weighted sums of V, DV vectors of 16 from `column` on.
template <class L, class T, int NQ, int DV>
void sum_values(const AttentionCall<T>& call, const TileGroups<T>& groups, const float (*weights)[kSoftmaxTile],
                std::size_t column, float (*sums)[kMaxHeadDim]) {
  const std::size_t stride = call.kv.padded_dim();
  typename L::F sum[NQ][DV];
#pragma GCC unroll 4
  for (int q = 0; q < NQ; ++q)
#pragma GCC unroll 4
    for (int d = 0; d < DV; ++d) sum[q][d] = L::zero();
  for (std::size_t g = 0; g < groups.count; ++g) {
    const T* value = groups.value[g] + column;
    for (std::size_t t = 0; t < kTokenGroup; ++t, value += stride) {
      typename L::F v[DV];
#pragma GCC unroll 4
      for (int d = 0; d < DV; ++d) v[d] = L::load(value + d * kPanel);
#pragma GCC unroll 4
      for (int q = 0; q < NQ; ++q) {
        const auto weight = L::set1(weights[q][g * kTokenGroup + t]);
#pragma GCC unroll 4
        for (int d = 0; d < DV; ++d) sum[q][d] = L::fmadd(v[d], weight, sum[q][d]);
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < NQ; ++q)
#pragma GCC unroll 4
    for (int d = 0; d < DV; ++d) L::store(sums[q] + column + d * kPanel, sum[q][d]);
}

/// All columns from `column` on, DV vectors at a time, the rest with fewer: a head of 48 takes one pass of three. Each
/// sum runs through the tokens in order whatever DV is.
template <class L, class T, int NQ, int DV>
void sum_columns(const AttentionCall<T>& call, const TileGroups<T>& groups, const float (*weights)[kSoftmaxTile],
                 std::size_t column, float (*sums)[kMaxHeadDim]) {
  for (; column + DV * kPanel <= call.kv.padded_dim(); column += DV * kPanel)
    sum_values<L, T, NQ, DV>(call, groups, weights, column, sums);
  if constexpr (DV > 1) sum_columns<L, T, NQ, DV - 1>(call, groups, weights, column, sums);
}

template <class L>
float exp_one(float x) {
  float lanes[kPanel];
  L::store(lanes, exp_lanes<L>(L::set1(x)));
  return lanes[0];
}

/// What has been merged so far of one query.
struct Running {
  float top = -INFINITY;
  float total = 0;
};

template <class L>
void merge(Running& running, float* sums, TileSum tile, const float* tile_sums, std::size_t dim) {
  if (tile.top == -INFINITY) return;
  const float top = running.top > tile.top ? running.top : tile.top;
  const float old_scale = running.top == -INFINITY ? 0.0f : exp_one<L>(running.top - top);
  const float new_scale = exp_one<L>(tile.top - top);
  running.top = top;
  running.total = running.total * old_scale + tile.total * new_scale;
  for (std::size_t i = 0; i < dim; i += kPanel) {
    const auto old_part = L::mul(L::load(sums + i), L::set1(old_scale));
    L::store(sums + i, L::fmadd(L::load(tile_sums + i), L::set1(new_scale), old_part));
  }
}

template <class L, class T, int NQ>
void attend(const AttentionCall<T>& call) {
  const std::size_t dim = call.kv.padded_dim();
  std::size_t end = 0;
  for (int q = 0; q < NQ; ++q) end = call.context[q] > end ? call.context[q] : end;
  alignas(64) float scores[NQ][kSoftmaxTile];
  alignas(64) float tile_sums[NQ][kMaxHeadDim];
  alignas(64) float sums[NQ][kMaxHeadDim];
  Running running[NQ];
  for (int q = 0; q < NQ; ++q)
    for (std::size_t i = 0; i < dim; ++i) sums[q][i] = 0;
  for (std::size_t first = 0; first < end; first += kSoftmaxTile) {
    const auto groups = find_groups(call, first, end - first < kSoftmaxTile ? end : first + kSoftmaxTile);
    std::size_t g = 0;
    if constexpr (L::kScoreGroups > 1)
      for (; g + L::kScoreGroups <= groups.count; g += L::kScoreGroups)
        score_groups<L, T, NQ, L::kScoreGroups>(call, groups, g, first, scores);
    for (; g < groups.count; ++g) score_groups<L, T, NQ, 1>(call, groups, g, first, scores);
    TileSum tile[NQ];
    for (int q = 0; q < NQ; ++q) tile[q] = soften<L>(scores[q], groups.count);
    sum_columns<L, T, NQ, L::kValueVectors>(call, groups, scores, 0, tile_sums);
    for (int q = 0; q < NQ; ++q) merge<L>(running[q], sums[q], tile[q], tile_sums[q], dim);
  }
  for (int q = 0; q < NQ; ++q) {
    const auto scale = L::set1(1.0f / running[q].total);
    for (std::size_t i = 0; i < call.kv.head_dim; i += kPanel) {
      const std::size_t count = call.kv.head_dim - i < kPanel ? call.kv.head_dim - i : kPanel;
      store_tail<L, T>(call.out[q] + i, count, L::mul(L::load(sums[q] + i), scale));
    }
  }
}

template <class L, class T>
void attention(const AttentionCall<T>& call) {
  switch (call.num_queries) {
    case 1:
      return attend<L, T, 1>(call);
    case 2:
      return attend<L, T, 2>(call);
    case 3:
      return attend<L, T, 3>(call);
    default:
      return attend<L, T, 4>(call);
  }
}

template <class L>
constexpr Kernels make_table(Isa isa) {
  return {isa,
          {gemm<L, float>, attention<L, float>, store_kv<L, float>, rope_query<L, float>, rms_norm<L, float>},
          {gemm<L, Bf16>, attention<L, Bf16>, store_kv<L, Bf16>, rope_query<L, Bf16>, rms_norm<L, Bf16>},
          argmax<L>,
          exp_sum<L>};
}

}  // namespace
}  // namespace tokenstone::kernels
