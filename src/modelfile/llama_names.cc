#include "modelfile/llama_names.h"

#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::modelfile {
namespace {

struct Pair {
  std::string_view gguf, hugging_face;
};

constexpr std::array<Pair, 9> kLayerTensors = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

/// rope_freqs: Llama 3.1's divisors of the rotation frequencies, which GGUF files carry as a tensor.
constexpr std::array<Pair, 4> kGlobalTensors = {{
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
    {"rope_freqs.weight", "rope_freqs.weight"},
}};

struct LayerName {
  std::string_view layer, tensor, part;
};

/// Splits "<prefix>3.self_attn.q_proj.weight" into layer, tensor and part, if the layer exists.
std::optional<LayerName> split_layer_name(std::string_view name, std::string_view prefix, std::uint32_t num_layers) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::size_t first = name.find('.');
  const std::size_t last = name.rfind('.');
  if (first == std::string_view::npos || first == 0 || last == first) return std::nullopt;
  const LayerName found{name.substr(0, first), name.substr(first + 1, last - first - 1), name.substr(last + 1)};
  const auto layer = parse_int(found.layer);
  const bool canonical = found.layer.size() == 1 || found.layer.front() != '0';
  if (!layer || *layer < 0 || *layer >= num_layers || !canonical) return std::nullopt;
  return found;
}

bool has_part(std::string_view tensor, std::string_view part) {
  return part == "weight" || (part == "bias" && tensor.ends_with("_proj"));
}

}  // namespace

std::optional<std::string> hugging_face_name(std::string_view gguf_name, std::uint32_t num_layers) {
  for (const Pair& pair : kGlobalTensors)
    if (pair.gguf == gguf_name) return std::string(pair.hugging_face);
  const auto name = split_layer_name(gguf_name, "blk.", num_layers);
  if (!name) return std::nullopt;
  for (const Pair& pair : kLayerTensors)
    if (pair.gguf == name->tensor && has_part(pair.hugging_face, name->part))
      return fmt::format("model.layers.{}.{}.{}", name->layer, pair.hugging_face, name->part);
  return std::nullopt;
}

bool is_llama_tensor(std::string_view name, std::uint32_t num_layers) {
  for (const Pair& pair : kGlobalTensors)
    if (pair.hugging_face == name) return true;
  const auto layer_name = split_layer_name(name, "model.layers.", num_layers);
  if (!layer_name) return false;
  // Buffers that old checkpoints carry along; they hold what rope_theta already says.
  if (layer_name->tensor == "self_attn.rotary_emb" && layer_name->part == "inv_freq") return true;
  for (const Pair& pair : kLayerTensors)
    if (pair.hugging_face == layer_name->tensor) return has_part(pair.hugging_face, layer_name->part);
  return false;
}

}  // namespace tokenstone::modelfile
