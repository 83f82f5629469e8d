// How many KV blocks a budget buys, and the longest sequence that follows from it.
// Pure; any thread. Units: bytes, tokens. Failure: Error (usage) with the number that would do.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_options.h"
#include "engine/model_shape.h"

namespace tokenstone::engine {

struct KvPlan {
  std::uint32_t num_blocks = 0;
  std::uint32_t max_model_len = 0;
  std::vector<std::string> warnings;
};

/// max_model_len: as asked; else the model's own context, or what the KV cache holds if that is less.
Result<KvPlan> plan_kv(const ModelShape& shape, Precision precision, const EngineOptions& options);

}  // namespace tokenstone::engine
