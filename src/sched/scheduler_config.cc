#include "sched/scheduler_config.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::sched {
namespace {

constexpr std::array<std::string_view, 8> kPresets = {"naive", "kv",     "static",  "continuous",
                                                      "paged", "prefix", "chunked", "ngram"};

Status check_variant(const SchedulerConfig& config) {
  if (config.batching != Batching::continuous)
    return usage_error("batching other than continuous is not built yet; use --variant chunked", "batching");
  if (config.kv_layout != KvLayout::paged)
    return usage_error("a KV layout other than paged is not built yet; use --variant chunked", "kv-layout");
  if (config.proposer != Proposer::none)
    return usage_error("speculative decoding is not built yet; leave --speculative out", "speculative");
  if (!config.enable_chunked_prefill)
    return usage_error("whole-prompt prefill is not built yet; use --enable-chunked-prefill", "enable-chunked-prefill");
  return {};
}

Status at_least_one(std::uint32_t value, std::string_view flag) {
  if (value > 0) return {};
  return usage_error(fmt::format("--{} must be at least 1; it is 0", flag), std::string(flag));
}

}  // namespace

Status validate(const SchedulerConfig& config) {
  TS_TRY_STATUS(check_variant(config));
  TS_TRY_STATUS(at_least_one(config.max_num_seqs, "max-num-seqs"));
  TS_TRY_STATUS(at_least_one(config.max_num_batched_tokens, "max-num-batched-tokens"));
  TS_TRY_STATUS(at_least_one(config.block_size, "block-size"));
  if (config.num_blocks == 0)
    return usage_error("the KV cache holds no block; give more --kv-cache-memory or a smaller --block-size",
                       "kv-cache-memory");
  if (config.kv_tokens() > UINT32_MAX)
    return usage_error(fmt::format("the KV cache of {} tokens is over the limit of {}; give less --kv-cache-memory",
                                   config.kv_tokens(), UINT32_MAX),
                       "kv-cache-memory");
  if (config.max_model_len < 2)
    return usage_error(fmt::format("--max-model-len must hold a prompt and an answer, at least 2 tokens; it is {}",
                                   config.max_model_len),
                       "max-model-len");
  if (config.max_num_batched_tokens < config.max_num_seqs)
    return usage_error(
        fmt::format("--max-num-batched-tokens {} is less than --max-num-seqs {}: some sequences would get "
                    "no token in a step; raise the one to {} or lower the other",
                    config.max_num_batched_tokens, config.max_num_seqs, config.max_num_seqs),
        "max-num-batched-tokens");
  return {};
}

Result<SchedulerConfig> preset(std::string_view name) {
  if (name == "chunked") return SchedulerConfig{};
  const std::vector<std::string> names(kPresets.begin(), kPresets.end());
  for (const std::string& known : names)
    if (name == known) return usage_error(fmt::format("variant '{}' is not built yet; use chunked", name), "variant");
  const auto near = nearest_name(name, names);
  return usage_error(fmt::format("there is no variant '{}'; {}", name,
                                 near && *near != "chunked" ? fmt::format("'{}' is the nearest name", *near)
                                                            : std::string("use chunked")),
                     "variant");
}

}  // namespace tokenstone::sched
