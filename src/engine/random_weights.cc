#include <cmath>

#include "base/rng.h"
#include "engine/weight_source.h"

namespace tokenstone::engine {
namespace {

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(const ModelShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {}

  void row(Tensor tensor, std::uint32_t layer, std::size_t row, float* out) const override {
    const std::size_t n = tensor_shape(shape_, tensor).columns;
    if (tensor == Tensor::attn_norm || tensor == Tensor::ffn_norm || tensor == Tensor::final_norm) {
      std::fill_n(out, n, 1.0f);
      return;
    }
    const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed_),
                                              static_cast<std::uint32_t>(seed_ >> 32)};
    const std::uint32_t stream = static_cast<std::uint32_t>(streams::weights) << 8 | static_cast<std::uint32_t>(tensor);
    const float step = half_width(tensor, n) / 32768.0f;
    for (std::size_t i = 0; i < n; i += kPerBlock) {
      const std::uint64_t block = row * ((n + kPerBlock - 1) / kPerBlock) + i / kPerBlock;
      const auto words =
          philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), layer, stream}, key);
      const std::size_t count = std::min(kPerBlock, n - i);
      for (std::size_t j = 0; j < count; ++j) {
        const auto bits = static_cast<std::int32_t>(words[j / 2] >> (j % 2 * 16) & 0xffffu);
        out[i + j] = (static_cast<float>(bits) - 32767.5f) * step;
      }
    }
  }

 private:
  static constexpr std::size_t kPerBlock = 8;  ///< 16 bits each: more than a bfloat16 keeps

  /// Of the uniform law with the tensor's variance.
  float half_width(Tensor tensor, std::size_t inputs) const {
    double variance = 1.0 / static_cast<double>(inputs);
    if (tensor == Tensor::o || tensor == Tensor::down) variance /= 2.0 * shape_.layers;
    return static_cast<float>(std::sqrt(3.0 * variance));
  }

  ModelShape shape_;
  std::uint64_t seed_;
};

}  // namespace

TensorShape tensor_shape(const ModelShape& s, Tensor tensor) {
  const std::size_t q = std::size_t{s.heads} * s.head_dim, kv = std::size_t{s.kv_heads} * s.head_dim;
  switch (tensor) {
    case Tensor::embed:
    case Tensor::head:
      return {s.vocab, s.hidden};
    case Tensor::q:
      return {q, s.hidden};
    case Tensor::k:
    case Tensor::v:
      return {kv, s.hidden};
    case Tensor::o:
      return {s.hidden, q};
    case Tensor::gate:
    case Tensor::up:
      return {s.ffn, s.hidden};
    case Tensor::down:
      return {s.hidden, s.ffn};
    case Tensor::attn_norm:
    case Tensor::ffn_norm:
    case Tensor::final_norm:
      return {1, s.hidden};
  }
  return {0, 0};
}

std::unique_ptr<WeightSource> make_random_weights(const ModelShape& shape, std::uint64_t seed) {
  return std::make_unique<RandomWeights>(shape, seed);
}

}  // namespace tokenstone::engine
