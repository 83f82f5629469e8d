// The numbers that define a Llama: of the built-in shapes, or taken from a model file and checked.
// Plain values; any thread. Failure: `shape_from_config` gives an Error (usage) that names every number it cannot use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::modelfile {
struct ModelConfig;
}

namespace tokenstone::engine {

enum class Precision { float32, bfloat16 };
std::string_view to_string(Precision precision);
constexpr std::size_t bytes_per_element(Precision precision) { return precision == Precision::float32 ? 4 : 2; }

struct ModelShape {
  std::string name;
  std::uint32_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  std::uint32_t context = 0;  ///< the model's own; built-in shapes: the most that the engine allows
  float rms_eps = 1e-5f;
  double rope_theta = 10000.0;
  bool tied_head = true;          ///< the embedding is the head
  bool rope_interleaved = false;  ///< q and k rows stand for adjacent pairs in the file; undone at loading
  std::vector<TokenId> eos;

  std::uint32_t group() const { return heads / kv_heads; }
  std::uint64_t parameters() const;
  /// K and V of one token over all layers, with V's rows padded to whole vectors.
  std::uint64_t kv_bytes_per_token(Precision precision) const;
};

/// The longest context of a built-in shape, in tokens.
inline constexpr std::uint32_t kBuiltinContext = 32768;

std::span<const ModelShape> builtin_shapes();
std::vector<std::string> builtin_shape_names();
std::optional<ModelShape> find_builtin_shape(std::string_view name);
Result<ModelShape> shape_from_config(const modelfile::ModelConfig& config);

}  // namespace tokenstone::engine
