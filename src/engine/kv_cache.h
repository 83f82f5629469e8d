// The memory of the KV blocks of all layers, in the kernels' layout, and how many blocks a budget buys.
// Ownership: owns its memory. Threads: rows write their own slots; the executor's barriers order writes before reads.
// Units: bytes, blocks. Failure: none; a budget that is too small is the engine's matter.
#pragma once

#include "engine/model_shape.h"
#include "kernels/kernels.h"
#include "kernels/memory.h"

namespace tokenstone::engine {

template <class T>
class KvCache {
 public:
  KvCache(const ModelShape& shape, std::uint32_t num_blocks, std::uint32_t block_size) {
    layer_ = {nullptr, shape.kv_heads, shape.head_dim, block_size};
    layer_elements_ = layer_.block_stride() * num_blocks;
    memory_ = kernels::HugeBuffer(layer_elements_ * shape.layers * sizeof(T));
  }

  kernels::KvView<T> layer(std::size_t index) {
    kernels::KvView<T> view = layer_;
    view.layer = memory_.as<T>() + index * layer_elements_;
    return view;
  }
  std::uint64_t bytes() const { return memory_.bytes(); }

 private:
  kernels::KvView<T> layer_;
  std::size_t layer_elements_ = 0;
  kernels::HugeBuffer memory_;
};

}  // namespace tokenstone::engine
