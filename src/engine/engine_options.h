// What a person can choose about the embedded engine; flags and defaults of `tokenstone serve` and of the target
// `engine`. Plain values; any thread. Units: bytes, tokens. Failure: `validate` lists every bad field at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tokenstone::engine {

struct EngineOptions {
  std::string model = "tiny-15m";    ///< a built-in shape, a GGUF file, a .safetensors file or a Hugging Face folder
  std::string tokenizer;             ///< a path; empty: the model's own
  std::string served_model_name;     ///< empty: as `model`
  std::string load_format = "auto";  ///< auto; dummy: random weights in the model's shape
  std::string dtype = "auto";        ///< auto, float32, bfloat16
  std::string variant = "chunked";
  std::string chat_template_family;  ///< empty: recognised from the tokenizer; ChatML for built-in shapes
  std::uint32_t threads = 0;         ///< 0: all CPUs of this process but one, which the server and the client share
  std::uint64_t kv_cache_memory = 256ull << 20;  ///< modest, so that paging and eviction act on a laptop
  std::uint32_t block_size = 16;                 ///< 16, 32, 64 or 128
  std::uint32_t max_num_seqs = 128;
  /// A CPU computes about as fast in steps of 512 tokens as in longer ones, and a longer one makes decodes wait longer.
  std::uint32_t max_num_batched_tokens = 512;
  std::optional<std::uint32_t> max_model_len;  ///< empty: what the model and the KV cache allow
  std::uint32_t long_prefill_token_threshold = 0;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  std::uint64_t seed = 0;  ///< of random weights
};

/// One Error (usage) per bad field; empty when all are good. What needs the model's file is found by Engine::create.
std::vector<Error> validate(const EngineOptions& options);
/// `threads`, with 0 resolved.
std::uint32_t resolved_threads(const EngineOptions& options);

}  // namespace tokenstone::engine
