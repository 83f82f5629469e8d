// The configuration of a model out of GGUF metadata: keys are prefixed by the architecture, integers come in any width.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "modelfile/loaders.h"

namespace tokenstone::modelfile {
namespace {

class MetadataReader {
 public:
  explicit MetadataReader(const ModelFile& model) : model_(model) {}

  const MetaValue* find(const std::string& key) const {
    const auto found = model_.metadata.find(key);
    return found == model_.metadata.end() ? nullptr : &found->second;
  }

  std::string text(const std::string& key) const {
    const MetaValue* value = find(key);
    const auto* text = value != nullptr ? std::get_if<std::string>(value) : nullptr;
    return text != nullptr ? *text : std::string();
  }

  /// A whole number of any width, or an array of equal ones (some converters write one per layer). Zero when absent.
  Status count(const std::string& key, std::uint32_t& out) const {
    const MetaValue* value = find(key);
    if (value == nullptr) return {};
    const auto number = whole(*value);
    if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max())
      return usage_error(
          fmt::format("{}: metadata {} must be one whole number from 0 to 4294967295 for all layers; convert the "
                      "model again",
                      model_.path, key));
    out = static_cast<std::uint32_t>(*number);
    return {};
  }

  Status real(const std::string& key, double& out) const {
    const MetaValue* value = find(key);
    if (value == nullptr) return {};
    const auto* number = std::get_if<double>(value);
    if (number == nullptr || !std::isfinite(*number) || *number <= 0)
      return usage_error(
          fmt::format("{}: metadata {} must be a positive number; convert the model again", model_.path, key));
    out = *number;
    return {};
  }

  /// A token's number; converters write 2^32 - 1 for "none".
  TokenId token(const std::string& key) const {
    const MetaValue* value = find(key);
    const auto number = value != nullptr ? whole(*value) : std::nullopt;
    if (!number || *number < 0 || *number > std::numeric_limits<TokenId>::max()) return kNoToken;
    return static_cast<TokenId>(*number);
  }

 private:
  static std::optional<std::int64_t> whole(const MetaValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* number = std::get_if<std::uint64_t>(&value))
      return *number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                 ? std::optional(static_cast<std::int64_t>(*number))
                 : std::nullopt;
    const auto* many = std::get_if<std::vector<std::int64_t>>(&value);
    if (many == nullptr || many->empty()) return std::nullopt;
    for (const std::int64_t number : *many)
      if (number != many->front()) return std::nullopt;
    return many->front();
  }

  const ModelFile& model_;
};

Status read_sizes(const MetadataReader& meta, const std::string& arch, ModelConfig& config) {
  TS_TRY_STATUS(meta.count(arch + ".block_count", config.num_layers));
  TS_TRY_STATUS(meta.count(arch + ".embedding_length", config.hidden_size));
  TS_TRY_STATUS(meta.count(arch + ".feed_forward_length", config.intermediate_size));
  TS_TRY_STATUS(meta.count(arch + ".attention.head_count", config.num_heads));
  TS_TRY_STATUS(meta.count(arch + ".attention.head_count_kv", config.num_kv_heads));
  TS_TRY_STATUS(meta.count(arch + ".attention.key_length", config.head_dim));
  TS_TRY_STATUS(meta.count(arch + ".rope.dimension_count", config.rope_dim));
  TS_TRY_STATUS(meta.count(arch + ".context_length", config.max_position_embeddings));
  TS_TRY_STATUS(meta.count(arch + ".vocab_size", config.vocab_size));
  TS_TRY_STATUS(meta.real(arch + ".attention.layer_norm_rms_epsilon", config.rms_norm_eps));
  TS_TRY_STATUS(meta.real(arch + ".rope.freq_base", config.rope_theta));
  if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
  if (config.head_dim == 0 && config.num_heads != 0) config.head_dim = config.hidden_size / config.num_heads;
  return {};
}

void read_vocabulary(const MetadataReader& meta, const ModelFile& model, ModelConfig& config) {
  config.bos_token_id = meta.token("tokenizer.ggml.bos_token_id");
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const TokenId id = meta.token(key);
    if (id != kNoToken && std::ranges::find(config.eos_token_ids, id) == config.eos_token_ids.end())
      config.eos_token_ids.push_back(id);
  }
  // The embedding's rows are what counts; the key is missing in older files and wrong in some.
  const TensorView* embedding = model.find("model.embed_tokens.weight");
  const MetaValue* tokens = meta.find("tokenizer.ggml.tokens");
  const auto* list = tokens != nullptr ? std::get_if<std::vector<std::string>>(tokens) : nullptr;
  if (embedding != nullptr && embedding->shape.size() == 2 &&
      embedding->shape[0] <= std::numeric_limits<std::uint32_t>::max())
    config.vocab_size = static_cast<std::uint32_t>(embedding->shape[0]);
  else if (config.vocab_size == 0 && list != nullptr)
    config.vocab_size = static_cast<std::uint32_t>(list->size());
}

}  // namespace

Status config_from_metadata(ModelFile& model) {
  const MetadataReader meta(model);
  ModelConfig& config = model.config;
  config.architecture = meta.text("general.architecture");
  config.name = meta.text("general.name");
  if (config.architecture.empty())
    return usage_error(fmt::format("{}: the metadata lacks general.architecture; convert the model again", model.path));
  TS_TRY_STATUS(read_sizes(meta, config.architecture, config));
  read_vocabulary(meta, model, config);
  config.tie_word_embeddings = !model.tensors.empty() && model.find("lm_head.weight") == nullptr;
  config.rope_interleaved = config.architecture == "llama";
  config.rope_scaling = meta.text(config.architecture + ".rope.scaling.type");
  if (config.rope_scaling == "none") config.rope_scaling.clear();
  // Llama 3.1 files carry their scaling as a tensor of divisors and say nothing in the metadata.
  if (config.rope_scaling.empty() && model.find("rope_freqs.weight") != nullptr) config.rope_scaling = "llama3";
  if (const TensorView* embedding = model.find("model.embed_tokens.weight")) config.torch_dtype = embedding->dtype_name;
  return {};
}

}  // namespace tokenstone::modelfile
