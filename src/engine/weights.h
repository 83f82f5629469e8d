// A model's weights in the kernels' layout.
//
// Merged matrices: q, k and v as one; gate and up as one, in turns of a panel each, so that a tile holds both and joins
// them. The embedding is kept packed only: it is the head of a tied model, and rows are looked up in it. Ownership:
// owns its memory. Threads: built with the pool, then read-only. Failure: none.
#pragma once

#include <vector>

#include "engine/model_shape.h"
#include "engine/weight_source.h"
#include "kernels/packed_matrix.h"
#include "kernels/thread_pool.h"

namespace tokenstone::engine {

template <class T>
struct LayerWeights {
  std::vector<float> attn_norm, ffn_norm;  ///< [hidden]
  kernels::PackedMatrix<T> qkv;            ///< [(heads + 2 kv_heads) head_dim, hidden]
  kernels::PackedMatrix<T> o;              ///< [hidden, heads head_dim]
  kernels::PackedMatrix<T> gate_up;        ///< [2 ffn rounded up to panels, hidden]
  kernels::PackedMatrix<T> down;           ///< [hidden, ffn]
};

template <class T>
struct Weights {
  kernels::PackedMatrix<T> embedding;  ///< [vocab, hidden]
  kernels::PackedMatrix<T> own_head;   ///< [vocab, hidden]; empty when tied
  std::vector<float> final_norm;       ///< [hidden]
  std::vector<LayerWeights<T>> layers;

  const kernels::PackedMatrix<T>& head() const { return own_head.outputs() == 0 ? embedding : own_head; }
  std::uint64_t bytes() const;
};

template <class T>
Weights<T> build_weights(const ModelShape& shape, const WeightSource& source, kernels::ThreadPool& pool);

}  // namespace tokenstone::engine
