#include "engine/weights.h"

namespace tokenstone::engine {
namespace {

using kernels::kPanel;
using kernels::PackedMatrix;

/// Packs a matrix whose row n is written by `row(n, out)`; `row` leaves the zeros of a row that does not exist.
template <class T, class RowFn>
PackedMatrix<T> pack(std::size_t outputs, std::size_t inputs, kernels::ThreadPool& pool, const RowFn& row) {
  PackedMatrix<T> matrix(outputs, inputs);
  pool.run([&](kernels::ThreadPool::Worker& worker) {
    std::vector<float> rows(kPanel * inputs);
    const auto range = worker.range(matrix.panels());
    for (std::size_t panel = range.begin; panel < range.end; ++panel) {
      std::fill(rows.begin(), rows.end(), 0.0f);
      for (std::size_t lane = 0; lane < kPanel && panel * kPanel + lane < outputs; ++lane)
        row(panel * kPanel + lane, rows.data() + lane * inputs);
      matrix.pack_panel(panel, rows.data());
    }
  });
  return matrix;
}

template <class T>
class Builder {
 public:
  Builder(const ModelShape& shape, const WeightSource& source, kernels::ThreadPool& pool)
      : shape_(shape), source_(source), pool_(pool) {}

  PackedMatrix<T> plain(Tensor tensor, std::uint32_t layer) {
    const auto [rows, columns] = tensor_shape(shape_, tensor);
    return pack<T>(rows, columns, pool_, [&](std::size_t n, float* out) { source_.row(tensor, layer, n, out); });
  }

  PackedMatrix<T> qkv(std::uint32_t layer) {
    const std::size_t q = tensor_shape(shape_, Tensor::q).rows, kv = tensor_shape(shape_, Tensor::k).rows;
    return pack<T>(q + 2 * kv, shape_.hidden, pool_, [&](std::size_t n, float* out) {
      if (n < q) return source_.row(Tensor::q, layer, n, out);
      if (n < q + kv) return source_.row(Tensor::k, layer, n - q, out);
      source_.row(Tensor::v, layer, n - q - kv, out);
    });
  }

  PackedMatrix<T> gate_up(std::uint32_t layer) {
    const std::size_t outputs = 2 * kernels::round_up(shape_.ffn, kPanel);
    return pack<T>(outputs, shape_.hidden, pool_, [&](std::size_t n, float* out) {
      const std::size_t column = n / (2 * kPanel) * kPanel + n % kPanel;
      const Tensor tensor = n / kPanel % 2 == 0 ? Tensor::gate : Tensor::up;
      if (column < shape_.ffn) source_.row(tensor, layer, column, out);
    });
  }

  std::vector<float> norm(Tensor tensor, std::uint32_t layer) {
    std::vector<float> values(shape_.hidden);
    source_.row(tensor, layer, 0, values.data());
    return values;
  }

 private:
  const ModelShape& shape_;
  const WeightSource& source_;
  kernels::ThreadPool& pool_;
};

}  // namespace

template <class T>
Weights<T> build_weights(const ModelShape& shape, const WeightSource& source, kernels::ThreadPool& pool) {
  Builder<T> builder(shape, source, pool);
  Weights<T> weights;
  weights.embedding = builder.plain(Tensor::embed, 0);
  if (!shape.tied_head) weights.own_head = builder.plain(Tensor::head, 0);
  weights.final_norm = builder.norm(Tensor::final_norm, 0);
  weights.layers.resize(shape.layers);
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    LayerWeights<T>& layer = weights.layers[i];
    layer.attn_norm = builder.norm(Tensor::attn_norm, i);
    layer.ffn_norm = builder.norm(Tensor::ffn_norm, i);
    layer.qkv = builder.qkv(i);
    layer.o = builder.plain(Tensor::o, i);
    layer.gate_up = builder.gate_up(i);
    layer.down = builder.plain(Tensor::down, i);
  }
  return weights;
}

template <class T>
std::uint64_t Weights<T>::bytes() const {
  std::uint64_t total = embedding.bytes() + own_head.bytes();
  for (const auto& layer : layers)
    total += layer.qkv.bytes() + layer.o.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  return total;
}

template struct Weights<float>;
template struct Weights<kernels::Bf16>;
template Weights<float> build_weights(const ModelShape&, const WeightSource&, kernels::ThreadPool&);
template Weights<kernels::Bf16> build_weights(const ModelShape&, const WeightSource&, kernels::ThreadPool&);

}  // namespace tokenstone::engine
