#include "engine/model_shape.h"

#include <fmt/format.h>

#include "base/text.h"
#include "kernels/kernels.h"
#include "modelfile/model.h"

namespace tokenstone::engine {
namespace {

constexpr std::uint32_t kMaxHeadDim = 256;
constexpr std::uint32_t kMaxLayers = 1024;

ModelShape builtin(std::string name, std::uint32_t hidden, std::uint32_t layers, std::uint32_t heads,
                   std::uint32_t kv_heads) {
  ModelShape shape;
  shape.name = std::move(name);
  shape.hidden = hidden;
  shape.layers = layers;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = hidden / heads;
  shape.context = kBuiltinContext;
  return shape;
}

std::vector<ModelShape> make_builtin_shapes() {
  ModelShape tiny = builtin("tiny-15m", 288, 6, 6, 6);
  tiny.ffn = 768;
  tiny.vocab = 32000;
  ModelShape stories = builtin("stories-110m", 768, 12, 12, 12);
  stories.ffn = 2048;
  stories.vocab = 32000;
  ModelShape smol = builtin("smollm2-135m", 576, 30, 9, 3);
  smol.ffn = 1536;
  smol.vocab = 49152;
  smol.rope_theta = 100000.0;
  return {tiny, stories, smol};
}

/// Everything that makes these numbers unusable.
std::vector<std::string> faults(const ModelShape& s) {
  std::vector<std::string> found;
  const auto need = [&](bool good, std::string text) {
    if (!good) found.push_back(std::move(text));
  };
  need(s.hidden > 0 && s.hidden % 2 == 0, fmt::format("hidden_size {} (expected even and above 0)", s.hidden));
  need(s.ffn > 0 && s.ffn % 2 == 0, fmt::format("intermediate_size {} (expected even and above 0)", s.ffn));
  need(s.layers > 0 && s.layers <= kMaxLayers,
       fmt::format("num_hidden_layers {} (expected 1 to {})", s.layers, kMaxLayers));
  need(s.vocab > 0, "vocab_size 0 (expected at least 1)");
  need(s.heads > 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0,
       fmt::format("{} heads over {} kv heads (expected a whole multiple)", s.heads, s.kv_heads));
  need(s.head_dim > 0 && s.head_dim % 2 == 0 && s.head_dim <= kMaxHeadDim,
       fmt::format("head_dim {} (expected even, 2 to {})", s.head_dim, kMaxHeadDim));
  need(s.rope_theta > 0, fmt::format("rope_theta {} (expected above 0)", s.rope_theta));
  return found;
}

}  // namespace

std::string_view to_string(Precision precision) { return precision == Precision::float32 ? "float32" : "bfloat16"; }

std::uint64_t ModelShape::parameters() const {
  const std::uint64_t h = hidden, q = std::uint64_t{heads} * head_dim, kv = std::uint64_t{kv_heads} * head_dim;
  const std::uint64_t layer = h * (q + 2 * kv) + q * h + 3 * h * ffn + 2 * h;
  return layers * layer + (tied_head ? 1 : 2) * h * vocab + h;
}

std::uint64_t ModelShape::kv_bytes_per_token(Precision precision) const {
  const std::uint64_t elements = head_dim + kernels::round_up(head_dim, kernels::kPanel);
  return std::uint64_t{layers} * kv_heads * elements * bytes_per_element(precision);
}

std::span<const ModelShape> builtin_shapes() {
  static const std::vector<ModelShape> shapes = make_builtin_shapes();
  return shapes;
}

std::vector<std::string> builtin_shape_names() {
  std::vector<std::string> names;
  for (const ModelShape& shape : builtin_shapes()) names.push_back(shape.name);
  return names;
}

std::optional<ModelShape> find_builtin_shape(std::string_view name) {
  for (const ModelShape& shape : builtin_shapes())
    if (shape.name == name) return shape;
  return std::nullopt;
}

Result<ModelShape> shape_from_config(const modelfile::ModelConfig& config) {
  if (config.architecture != "llama")
    return usage_error(fmt::format("expected a model of the llama family, found '{}'; use a Llama, SmolLM or TinyLlama "
                                   "checkpoint",
                                   config.architecture),
                       "model");
  ModelShape shape;
  shape.name = config.name;
  shape.hidden = config.hidden_size;
  shape.layers = config.num_layers;
  shape.heads = config.num_heads;
  shape.kv_heads = config.num_kv_heads == 0 ? config.num_heads : config.num_kv_heads;
  shape.head_dim =
      config.head_dim != 0 || config.num_heads == 0 ? config.head_dim : config.hidden_size / config.num_heads;
  shape.ffn = config.intermediate_size;
  shape.vocab = config.vocab_size;
  shape.context = config.max_position_embeddings == 0 ? 2048 : config.max_position_embeddings;
  shape.rms_eps = static_cast<float>(config.rms_norm_eps);
  shape.rope_theta = config.rope_theta;
  shape.tied_head = config.tie_word_embeddings;
  shape.rope_interleaved = config.rope_interleaved;
  shape.eos = config.eos_token_ids;
  const auto found = faults(shape);
  if (!found.empty())
    return usage_error(fmt::format("the model's configuration cannot be run: {}", join(found, "; ")), "model");
  return shape;
}

}  // namespace tokenstone::engine
