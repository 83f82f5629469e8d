#include "app/engine_flags.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::app {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view suffix;
    double bytes;
  };
  static constexpr Unit units[] = {
      {"KiB", 1024.0},  {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"k", 1e3}, {"K", 1024.0}, {"m", 1e6},
      {"M", 1048576.0}, {"g", 1e9},         {"G", 1073741824.0},   {"", 1}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    const auto number = parse_double(text.substr(0, text.size() - unit.suffix.size()));
    if (number && *number >= 0 && *number * unit.bytes < 9e18)
      return static_cast<std::uint64_t>(std::llround(*number * unit.bytes));
  }
  return std::nullopt;
}

void add_engine_flags(FlagSet& flags, EngineFlags& v) {
  flags.group("Embedded engine")
      .add("variant", &v.options.variant, "NAME", "the engine's step; chunked is the one that is built")
      .add("dtype", &v.options.dtype, "TYPE", "auto (what the file has), float32 or bfloat16")
      .add("load-format", &v.options.load_format, "NAME", "auto; dummy: random weights in the model's shape")
      .add("threads", &v.threads, "N", "compute threads; 0: all CPUs but one")
      .add("kv-cache-memory", &v.kv_cache_memory, "SIZE", "bytes of KV cache, such as 256MiB",
           {"kv-cache-memory-bytes"})
      .add("block-size", &v.block_size, "N", "tokens per KV block: 16, 32, 64 or 128")
      .add("max-model-len", &v.max_model_len, "N", "context; what model and KV cache allow unless given")
      .add("max-num-seqs", &v.max_num_seqs, "N", "sequences that run at once")
      .add("max-num-batched-tokens", &v.max_num_batched_tokens, "N", "token budget of one step")
      .add("long-prefill-token-threshold", &v.long_prefill_token_threshold, "N",
           "prompt tokens of one sequence per step; 0: the budget")
      .add("enable-prefix-caching", &v.options.enable_prefix_caching, "", "reuse KV blocks of equal prompt prefixes")
      .add("enable-chunked-prefill", &v.options.enable_chunked_prefill, "", "split long prompts over steps")
      .add("chat-template-family", &v.options.chat_template_family, "NAME",
           "chatml, llama2, llama3, mistral, zephyr or gemma; recognised unless given");
}

void add_foreign_engine_flags(FlagSet& flags) {
  flags.accept("gpu-memory-utilization", true, "there is no GPU; --kv-cache-memory sets the KV cache")
      .accept("enforce-eager", false, "there are no graphs to capture")
      .accept("swap-space", true, "preemption recomputes")
      .accept("disable-log-stats", false, "there is no periodic log; see /metrics")
      .accept("disable-log-requests", false, "requests are not logged")
      .accept("trust-remote-code", false, "no code of a model is ever run")
      .accept("tokenizer-mode", true, "there is one mode")
      .accept("generation-config", true, "sampling defaults are OpenAI's");
  struct Refusal {
    const char* why;
    std::vector<const char*> names;
  };
  static const std::vector<Refusal> refusals = {
      {"the engine runs on one machine's CPU",
       {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "distributed-executor-backend",
        "enable-expert-parallel"}},
      {"quantised weights are not built yet; use F32, F16 or BF16", {"quantization"}},
      {"the KV cache has the model's type; other types are not built yet", {"kv-cache-dtype"}},
      {"adapters (LoRA) are not supported", {"enable-lora", "lora-modules", "max-loras", "max-lora-rank"}},
      {"speculation is not built yet", {"speculative-config", "speculative"}},
      {"other batching and KV layouts are not built yet", {"batching", "kv-layout"}},
      {"multimodal prompts are not supported", {"limit-mm-per-prompt", "mm-processor-kwargs"}},
      {"tool calls and reasoning parsers are not supported",
       {"enable-auto-tool-choice", "tool-call-parser", "reasoning-parser"}},
      {"templates are not run; name the family with --chat-template-family", {"chat-template"}},
      {"scheduling is first come, first served", {"scheduling-policy"}},
      {"log-probabilities are not built", {"max-logprobs"}},
      {"TLS is not built; put a proxy in front", {"ssl-keyfile", "ssl-certfile"}},
  };
  for (const Refusal& refusal : refusals)
    for (const char* name : refusal.names) flags.refuse(name, refusal.why);
}

Result<engine::EngineOptions> EngineFlags::resolve() const {
  engine::EngineOptions resolved = options;
  std::vector<std::string> faults;
  const auto count = [&](const char* flag, std::int64_t value, std::int64_t least) {
    if (value < least || value > INT32_MAX)
      faults.push_back(fmt::format("--{} must be {} or more, not {}", flag, least, value));
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, INT32_MAX));
  };
  resolved.threads = count("threads", threads, 0);
  resolved.block_size = count("block-size", block_size, 1);
  resolved.max_num_seqs = count("max-num-seqs", max_num_seqs, 1);
  resolved.max_num_batched_tokens = count("max-num-batched-tokens", max_num_batched_tokens, 1);
  resolved.long_prefill_token_threshold = count("long-prefill-token-threshold", long_prefill_token_threshold, 0);
  if (max_model_len) resolved.max_model_len = count("max-model-len", *max_model_len, 1);
  if (const auto bytes = parse_bytes(kv_cache_memory))
    resolved.kv_cache_memory = *bytes;
  else
    faults.push_back(fmt::format("--kv-cache-memory needs bytes such as 256MiB or 1GiB, not '{}'", kv_cache_memory));
  for (const Error& error : engine::validate(resolved)) faults.push_back(error.message);
  if (!faults.empty()) return usage_error(join(faults, "; "));
  return resolved;
}

}  // namespace tokenstone::app
