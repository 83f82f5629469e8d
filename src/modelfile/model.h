// A model on disk, read and checked: configuration, tensors under Hugging Face names, and the GGUF metadata that a
// tokenizer may be made from.
//
// Ownership: tensor bytes point into a mapping that the ModelFile holds. Threads: immutable after loading.
// Units: shapes are row-major [out, in] (a GGUF's dimensions are reversed on reading).
// Failure: a file is treated as hostile: every count, size, offset and type is checked before use; the Error says what
// was expected, what was found and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::modelfile {

enum class DType { f32, f16, bf16, other };
std::string_view to_string(DType dtype);

struct TensorView {
  std::string name;       ///< Hugging Face name, e.g. "model.layers.0.self_attn.q_proj.weight"
  std::string file_name;  ///< as it stands in the file
  DType dtype = DType::other;
  std::string dtype_name;            ///< the file's own word, e.g. "Q4_K" for `other`
  std::vector<std::uint64_t> shape;  ///< row-major
  std::span<const std::byte> data;   ///< aligned to the size of its elements
};

/// Llama family. Zero means: not stated.
struct ModelConfig {
  std::string architecture;  ///< "llama"; others are refused by the engine by name
  std::string name;
  std::uint32_t hidden_size = 0, num_layers = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, intermediate_size = 0,
                vocab_size = 0, max_position_embeddings = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  bool tie_word_embeddings = false;
  /// True when the rows of q_proj and k_proj are stored for rotation of adjacent pairs (GGUF `llama`); false for
  /// half-split.
  bool rope_interleaved = false;
  TokenId bos_token_id = kNoToken;
  std::vector<TokenId> eos_token_ids;
  std::string torch_dtype;
  /// The kind of RoPE scaling asked for ("llama3", "linear", "yarn", ...), empty for none: what the engine must refuse
  /// by name.
  std::string rope_scaling;
  std::uint32_t rope_dim = 0;  ///< rotated elements of a head; zero: all of them
  std::string hidden_act;      ///< "silu" for Llama; empty when not stated
};

/// One GGUF metadata value. Arrays of numbers are widened to int64 or double.
using MetaValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

struct ModelFile {
  std::string path;
  std::string format;  ///< "gguf" or "safetensors"
  ModelConfig config;
  std::map<std::string, TensorView> tensors;  ///< by Hugging Face name
  std::vector<std::string> unknown_tensors;   ///< names that no Llama has
  std::map<std::string, MetaValue> metadata;  ///< GGUF only
  std::shared_ptr<const void> storage;

  const TensorView* find(std::string_view name) const;
};

struct LoadOptions {
  std::uint64_t max_header_bytes = 1ull << 30;  ///< of a safetensors header
};

/// Opens a GGUF file, a .safetensors file (with config.json beside it), or a Hugging Face folder (with shards if an
/// index says so). Errors are ErrorKind::usage.
Result<std::shared_ptr<const ModelFile>> load_model(const std::filesystem::path& path, const LoadOptions& options = {});
/// A GGUF's metadata alone; files without tensors (vocabularies) are allowed.
Result<std::shared_ptr<const ModelFile>> load_gguf(const std::filesystem::path& path, const LoadOptions& options = {});
/// config.json alone.
Result<ModelConfig> load_config(const std::filesystem::path& config_json);

}  // namespace tokenstone::modelfile
