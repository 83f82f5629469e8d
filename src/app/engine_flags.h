// The embedded engine's flags, the same in `serve`, `bench serve --target engine`, `bench latency` and `bench
// throughput`: vLLM's engine arguments that concern text generation, the others accepted or refused by name. Ownership:
// the FlagSet binds to the values, which must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/flags.h"
#include "base/result.h"
#include "engine/engine_options.h"

namespace tokenstone::app {

/// What the flags hold before they become EngineOptions.
struct EngineFlags {
  engine::EngineOptions options;
  std::int64_t threads = 0;
  std::string kv_cache_memory = "256MiB";
  std::int64_t block_size = 16, max_num_seqs = 128, max_num_batched_tokens = 512, long_prefill_token_threshold = 0;
  std::optional<std::int64_t> max_model_len;

  /// Checks ranges and units; the error lists every bad field.
  Result<engine::EngineOptions> resolve() const;
};

/// `without_seed`: the benchmark's own --seed also seeds the weights.
void add_engine_flags(FlagSet& flags, EngineFlags& values);
/// vLLM's other engine arguments: accepted with a note or refused with the reason.
void add_foreign_engine_flags(FlagSet& flags);

/// "256MiB", "1GiB", "4096" (bytes).
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace tokenstone::app
