// config.json as Hugging Face writes it. A key that is there must have the right type; a key that is not leaves the
// default.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <simdjson.h>

#include "modelfile/loaders.h"

namespace tokenstone::modelfile {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

class ConfigReader {
 public:
  ConfigReader(std::string path, object root) : path_(std::move(path)), root_(root) {}

  bool has(std::string_view key) const {
    element value;
    return root_.at_key(key).get(value) == simdjson::SUCCESS && !value.is_null();
  }

  Status count(std::string_view key, std::uint32_t& out) const {
    if (!has(key)) return {};
    std::uint64_t value = 0;
    if (root_.at_key(key).get(value) != simdjson::SUCCESS || value > std::numeric_limits<std::uint32_t>::max())
      return wrong(key, "a whole number from 0 to 4294967295");
    out = static_cast<std::uint32_t>(value);
    return {};
  }

  Status real(std::string_view key, double& out) const {
    if (!has(key)) return {};
    double value = 0;
    if (root_.at_key(key).get(value) != simdjson::SUCCESS || !std::isfinite(value) || value <= 0)
      return wrong(key, "a positive number");
    out = value;
    return {};
  }

  Status flag(std::string_view key, bool& out) const {
    if (!has(key)) return {};
    if (root_.at_key(key).get(out) != simdjson::SUCCESS) return wrong(key, "true or false");
    return {};
  }

  Status text(std::string_view key, std::string& out) const {
    if (!has(key)) return {};
    std::string_view value;
    if (root_.at_key(key).get(value) != simdjson::SUCCESS) return wrong(key, "a text");
    out = value;
    return {};
  }

  /// One id or a list of ids.
  Status tokens(std::string_view key, std::vector<TokenId>& out) const {
    if (!has(key)) return {};
    const element value = root_.at_key(key);
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return token(key, value, out);
    for (const element item : list) TS_TRY_STATUS(token(key, item, out));
    return {};
  }

  std::optional<object> nested(std::string_view key) const {
    object value;
    if (root_.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  }

  std::unexpected<Error> wrong(std::string_view key, std::string_view expected) const {
    return usage_error(fmt::format("{}: \"{}\" must be {}; correct the file or fetch it again", path_, key, expected));
  }

 private:
  Status token(std::string_view key, const element& value, std::vector<TokenId>& out) const {
    std::int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max())
      return wrong(key, "a token number or a list of them");
    if (std::ranges::find(out, static_cast<TokenId>(id)) == out.end()) out.push_back(static_cast<TokenId>(id));
    return {};
  }

  std::string path_;
  object root_;
};

/// `rope_scaling: {type | rope_type, ...}`, or `rope_parameters` as newer files have it. "default" means none.
Status read_rope(const std::string& path, const ConfigReader& json, ModelConfig& config) {
  TS_TRY_STATUS(json.real("rope_theta", config.rope_theta));
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto settings = json.nested(key);
    if (!settings) {
      if (json.has(key)) return json.wrong(key, "an object or null");
      continue;
    }
    const ConfigReader rope(path, *settings);
    TS_TRY_STATUS(rope.real("rope_theta", config.rope_theta));
    std::string kind;
    TS_TRY_STATUS(rope.text("type", kind));
    TS_TRY_STATUS(rope.text("rope_type", kind));
    const bool stated = std::string_view(key) == "rope_scaling";
    if (kind.empty() && stated) return json.wrong(key, "an object with \"rope_type\"");
    config.rope_scaling = kind == "default" ? "" : kind;
  }
  double rotated = 1;
  TS_TRY_STATUS(json.real("partial_rotary_factor", rotated));
  if (rotated != 1) config.rope_dim = static_cast<std::uint32_t>(rotated * config.head_dim);
  return {};
}

Status read_sizes(const ConfigReader& json, ModelConfig& config) {
  TS_TRY_STATUS(json.count("hidden_size", config.hidden_size));
  TS_TRY_STATUS(json.count("num_hidden_layers", config.num_layers));
  TS_TRY_STATUS(json.count("num_attention_heads", config.num_heads));
  TS_TRY_STATUS(json.count("num_key_value_heads", config.num_kv_heads));
  TS_TRY_STATUS(json.count("head_dim", config.head_dim));
  TS_TRY_STATUS(json.count("intermediate_size", config.intermediate_size));
  TS_TRY_STATUS(json.count("vocab_size", config.vocab_size));
  TS_TRY_STATUS(json.count("max_position_embeddings", config.max_position_embeddings));
  TS_TRY_STATUS(json.real("rms_norm_eps", config.rms_norm_eps));
  if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
  if (config.head_dim == 0 && config.num_heads != 0) config.head_dim = config.hidden_size / config.num_heads;
  return {};
}

Status read_rest(const std::string& path, const ConfigReader& json, ModelConfig& config) {
  TS_TRY_STATUS(read_rope(path, json, config));
  TS_TRY_STATUS(json.flag("tie_word_embeddings", config.tie_word_embeddings));
  TS_TRY_STATUS(json.text("torch_dtype", config.torch_dtype));
  TS_TRY_STATUS(json.text("dtype", config.torch_dtype));
  TS_TRY_STATUS(json.text("hidden_act", config.hidden_act));
  std::vector<TokenId> bos;
  TS_TRY_STATUS(json.tokens("bos_token_id", bos));
  if (!bos.empty()) config.bos_token_id = bos.front();
  return json.tokens("eos_token_id", config.eos_token_ids);
}

/// generation_config.json beside the config names further end-of-text tokens (chat models end a turn with another one).
Status read_generation_config(const std::filesystem::path& path, ModelConfig& config) {
  if (!std::filesystem::exists(path)) return {};
  TS_TRY(const MappedFile file, MappedFile::open(path));
  simdjson::dom::parser parser;
  object root;
  if (parser.parse(file.text().data(), file.text().size()).get(root) != simdjson::SUCCESS)
    return usage_error(fmt::format("{}: expected a JSON object, found {}; fetch it again", path.string(),
                                   describe_start(file.bytes())));
  return ConfigReader(path.string(), root).tokens("eos_token_id", config.eos_token_ids);
}

}  // namespace

Result<ModelConfig> load_config(const std::filesystem::path& config_json) {
  TS_TRY(const MappedFile file, MappedFile::open(config_json));
  const std::string path = config_json.string();
  simdjson::dom::parser parser;
  object root;
  if (parser.parse(file.text().data(), file.text().size()).get(root) != simdjson::SUCCESS)
    return usage_error(fmt::format("{}: expected a JSON object, found {}; fetch the model's config.json again", path,
                                   describe_start(file.bytes())));
  const ConfigReader outer(path, root);
  ModelConfig config;
  TS_TRY_STATUS(outer.text("model_type", config.architecture));
  // Models of text and images keep the language model's figures one level down; the outer name says what it is.
  const auto text_config = outer.nested("text_config");
  const ConfigReader json(path, text_config && !outer.has("hidden_size") ? *text_config : root);
  if (config.architecture.empty()) TS_TRY_STATUS(json.text("model_type", config.architecture));
  if (config.architecture.empty()) return outer.wrong("model_type", "the model's family, e.g. \"llama\"");
  TS_TRY_STATUS(json.text("_name_or_path", config.name));
  TS_TRY_STATUS(read_sizes(json, config));
  TS_TRY_STATUS(read_rest(path, json, config));
  TS_TRY_STATUS(read_generation_config(config_json.parent_path() / "generation_config.json", config));
  return config;
}

}  // namespace tokenstone::modelfile
