#include "engine/kv_plan.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::engine {
namespace {

Error too_small(const EngineOptions& options, std::uint64_t tokens, std::uint64_t needed) {
  return {ErrorKind::usage,
          fmt::format(
              "--kv-cache-memory: expected at least {} bytes for a sequence of {} tokens, found {}; give {} or lower "
              "--max-model-len",
              needed, tokens, options.kv_cache_memory, needed),
          "kv-cache-memory"};
}

}  // namespace

Result<KvPlan> plan_kv(const ModelShape& shape, Precision precision, const EngineOptions& options) {
  const std::uint64_t block_bytes = shape.kv_bytes_per_token(precision) * options.block_size;
  const std::uint64_t blocks = options.kv_cache_memory / block_bytes;
  const std::uint64_t held = blocks * options.block_size;
  if (blocks == 0) return std::unexpected(too_small(options, options.block_size, block_bytes));
  if (held > UINT32_MAX)
    return usage_error(
        fmt::format("--kv-cache-memory: expected at most {} bytes ({} tokens), found {}",
                    block_bytes * (UINT32_MAX / options.block_size), UINT32_MAX, options.kv_cache_memory),
        "kv-cache-memory");
  KvPlan plan;
  plan.num_blocks = static_cast<std::uint32_t>(blocks);
  if (!options.max_model_len) {
    plan.max_model_len = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape.context, held));
    if (plan.max_model_len < shape.context)
      plan.warnings.push_back(
          fmt::format("max_model_len is {}, what the KV cache holds; the model allows {} "
                      "(--kv-cache-memory {} would hold it)",
                      format_count(plan.max_model_len), format_count(shape.context),
                      shape.context / options.block_size * block_bytes + block_bytes));
    return plan;
  }
  plan.max_model_len = *options.max_model_len;
  const std::uint64_t needed_blocks = (std::uint64_t{plan.max_model_len} + options.block_size - 1) / options.block_size;
  if (needed_blocks > blocks)
    return std::unexpected(too_small(options, plan.max_model_len, needed_blocks * block_bytes));
  if (plan.max_model_len > shape.context)
    plan.warnings.push_back(
        fmt::format("max_model_len {} is above the model's own context of {}: text beyond that may lose "
                    "its sense",
                    format_count(plan.max_model_len), format_count(shape.context)));
  return plan;
}

}  // namespace tokenstone::engine
