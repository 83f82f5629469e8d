#include "app/parity.h"

#include <fmt/format.h>

#include "app/flag_tables.h"

namespace tokenstone::app {
namespace {

/// vLLM's result keys and what stands behind them here.
struct ForeignKey {
  std::string_view keys, standing, note;
};

constexpr ForeignKey kServeKeys[] = {
    {"date, endpoint_type, backend, label, model_id, tokenizer_id, num_prompts", "supported", ""},
    {"request_rate, burstiness, max_concurrency", "supported",
     "`request_rate` is the string \"inf\" when all is sent at once"},
    {"duration, completed, failed", "supported",
     "`completed + failed + unsent` is what was planned; vLLM has no `unsent`"},
    {"total_input_tokens, total_output_tokens", "supported", "from the server's usage; of completed requests"},
    {"request_throughput, request_goodput, output_throughput, total_token_throughput", "supported", ""},
    {"max_output_tokens_per_s, max_concurrent_requests", "supported", "by vLLM's rules; exact values stand beside"},
    {"{mean,median,std,pNN}_{ttft,tpot,itl,e2el}_ms", "supported",
     "our definitions (docs/methodology.md); p50, p90, p99 always, others by flag"},
    {"input_lens, output_lens, ttfts, itls, start_times, generated_texts, errors", "supported",
     "with --save-detailed; `start_times` count from the run's start; the first token is not in `itls`"},
    {"latencies, queue_times", "supported", "with --save-detailed (newer vLLM)"},
    {"rtfx", "not supported", "audio"},
    {"ramp_up_strategy, ramp_up_start_rps, ramp_up_end_rps, rps_change_events", "not supported",
     "ramps are not built yet"},
    {"probe_*", "not supported", "probes are not built yet"},
    {"spec_decode_*, diffusion_*", "not supported", "server counters are not read yet"},
    {"steady_state, input_throughput, failed_requests (native client)", "not supported",
     "requests.csv names the failed ones"},
};
constexpr ForeignKey kLatencyKeys[] = {{"avg_latency, latencies, percentiles", "supported", "seconds"}};
constexpr ForeignKey kThroughputKeys[] = {
    {"elapsed_time, num_requests, total_num_tokens, requests_per_second, tokens_per_second", "supported",
     "received tokens; output and input rates stand beside"}};

std::string_view word(FlagSet::Standing::Kind kind) {
  switch (kind) {
    case FlagSet::Standing::supported:
      return "supported";
    case FlagSet::Standing::accepted:
      return "accepted";
    default:
      return "refused";
  }
}

void append_flags(std::string& page, const ForeignCommand& command) {
  const auto standings = standings_of(command.command);
  page += fmt::format("\n## `vllm {}`: flags\n\n| flag | here | |\n|---|---|---|\n", command.command);
  for (const std::string_view flag : command.flags) {
    const auto found = standings.find(std::string(flag));
    if (found == standings.end()) {
      page += fmt::format("| `--{}` | unknown | |\n", flag);
      continue;
    }
    page += fmt::format("| `--{}` | {} | {} |\n", flag, word(found->second.kind), found->second.why);
  }
}

template <std::size_t N>
void append_keys(std::string& page, std::string_view command, const ForeignKey (&keys)[N]) {
  page += fmt::format("\n## `vllm {}`: result keys\n\n| keys | here | |\n|---|---|---|\n", command);
  for (const ForeignKey& key : keys) page += fmt::format("| `{}` | {} | {} |\n", key.keys, key.standing, key.note);
}

}  // namespace

const std::vector<ForeignCommand>& vllm_commands() {
  static const std::vector<ForeignCommand> commands = {
      {"bench serve",
       {"backend", "base-url", "host", "port", "endpoint", "header", "insecure", "model", "served-model-name",
        "tokenizer", "tokenizer-mode", "skip-tokenizer-init", "trust-remote-code", "lora-modules", "lora-assignment",
        "request-id-prefix", "label", "num-prompts", "request-rate", "burstiness", "max-concurrency",
        "ramp-up-strategy", "ramp-up-start-rps", "ramp-up-end-rps", "self-timed", "probe-request-rate", "num-warmups",
        "ready-check-timeout-sec", "profile", "seed", "disable-tqdm", "input-len", "output-len", "ignore-eos",
        "logprobs", "use-beam-search", "temperature", "top-p", "top-k", "min-p", "frequency-penalty",
        "presence-penalty", "repetition-penalty", "extra-body", "chat-template-kwargs", "skip-chat-template",
        "percentile-metrics", "metric-percentiles", "goodput", "save-result", "save-detailed", "append-result",
        "metadata", "result-dir", "result-filename", "plot-timeline", "timeline-itl-thresholds", "plot-dataset-stats",
        "dataset-name", "dataset-path", "no-oversample", "disable-shuffle", "no-stream", "enable-multimodal-chat",
        "random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len", "random-batch-size",
        "no-reranker", "random-mm-base-items-per-request", "random-mm-num-mm-items-range-ratio",
        "random-mm-limit-mm-per-prompt", "random-mm-bucket-config", "sharegpt-output-len", "sonnet-input-len",
        "sonnet-output-len", "sonnet-prefix-len", "custom-output-len", "custom-ensure-client-side-data",
        "spec-bench-output-len", "spec-bench-category", "speed-bench-dataset-subset", "speed-bench-output-len",
        "speed-bench-category", "prefix-repetition-prefix-len", "prefix-repetition-suffix-len",
        "prefix-repetition-num-prefixes", "prefix-repetition-output-len", "timed-trace-chunk-hash-size",
        "timed-trace-sec-multiplier", "timed-trace-label-timestamp", "timed-trace-label-input-length",
        "timed-trace-label-output-length", "timed-trace-label-hash-ids", "hf-subset", "hf-split", "hf-name",
        "hf-output-len", "blazedit-min-distance", "blazedit-max-distance", "asr-min-audio-len-sec",
        "asr-max-audio-len-sec", "bfcl-categories",
        // of the native client
        "max-model-len", "prompt-token-ids", "random-cache-hit-fraction", "random-cache-ratio",
        "steady-state-threshold", "steady-state-min-window", "no-steady-state", "profile-batch-threshold",
        "profile-duration", "num-runs", "sweep-max-concurrency", "sweep-request-rate", "sweep-num-prompts-factor",
        "sweep-summary-percentiles", "reset-prefix-cache", "compare", "dry-run", "multi-turn", "multi-turn-num-turns",
        "multi-turn-min-turns", "multi-turn-max-turns", "multi-turn-concurrency", "multi-turn-delay-ms",
        "multi-turn-prefix-global-ratio", "multi-turn-prefix-conversation-ratio", "per-turn-input-len",
        "speed-bench-max-input-len", "hf-text-column"}},
      {"bench latency",
       {"input-len", "output-len", "batch-size", "n", "use-beam-search", "num-iters-warmup", "num-iters", "profile",
        "output-json", "disable-detokenize"}},
      {"bench throughput",
       {"backend",
        "dataset-name",
        "dataset",
        "dataset-path",
        "hf-subset",
        "hf-split",
        "hf-name",
        "no-oversample",
        "enable-multimodal-chat",
        "input-len",
        "output-len",
        "n",
        "num-prompts",
        "num-warmups",
        "async-engine",
        "prequeue-requests",
        "disable-detokenize",
        "lora-path",
        "lora-assignment",
        "prefix-len",
        "profile",
        "output-json",
        "random-input-len",
        "random-output-len",
        "random-range-ratio",
        "random-prefix-len"}},
      {"serve",
       {"model",
        "served-model-name",
        "host",
        "port",
        "uds",
        "api-key",
        "tokenizer",
        "tokenizer-mode",
        "trust-remote-code",
        "dtype",
        "max-model-len",
        "max-num-seqs",
        "max-num-batched-tokens",
        "long-prefill-token-threshold",
        "block-size",
        "kv-cache-memory-bytes",
        "enable-prefix-caching",
        "enable-chunked-prefill",
        "seed",
        "load-format",
        "chat-template",
        "gpu-memory-utilization",
        "enforce-eager",
        "swap-space",
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "data-parallel-size",
        "distributed-executor-backend",
        "enable-expert-parallel",
        "quantization",
        "kv-cache-dtype",
        "enable-lora",
        "lora-modules",
        "max-loras",
        "max-lora-rank",
        "speculative-config",
        "scheduling-policy",
        "generation-config",
        "max-logprobs",
        "disable-log-stats",
        "disable-log-requests",
        "ssl-keyfile",
        "ssl-certfile",
        "limit-mm-per-prompt",
        "mm-processor-kwargs",
        "enable-auto-tool-choice",
        "tool-call-parser",
        "reasoning-parser"}},
  };
  return commands;
}

std::map<std::string, FlagSet::Standing> standings_of(std::string_view command) {
  if (command == "bench serve") return bench_serve_flag_table().standings();
  if (command == "bench latency") return bench_latency_flag_table().standings();
  if (command == "bench throughput") return bench_throughput_flag_table().standings();
  return serve_flag_table().standings();
}

std::string parity_page() {
  std::string page =
      "# vLLM parity\n\n"
      "Each flag and result key of vLLM's that concerns text generation, and where it stands: supported; accepted (it "
      "means nothing here, a\n"
      "note says so); refused by name, with the reason. Anything else is an unknown flag, answered with the nearest "
      "name. `_` and `-` are\n"
      "the same. This page is made from the flag tables; a test holds it to them (TOKENSTONE_UPDATE_GOLDEN=1 rewrites "
      "it).\n\n"
      "Deviations from vLLM's defaults: `--num-warmups` 8 instead of 0 (left out of every figure), one request as a "
      "ready check, p50, p90 and p99 of TTFT,\n"
      "TPOT, ITL and E2E always shown. Definitions that differ: docs/methodology.md.\n";
  for (const ForeignCommand& command : vllm_commands()) {
    append_flags(page, command);
    if (command.command == "bench serve") append_keys(page, command.command, kServeKeys);
    if (command.command == "bench latency") append_keys(page, command.command, kLatencyKeys);
    if (command.command == "bench throughput") append_keys(page, command.command, kThroughputKeys);
  }
  page +=
      "\n## Other commands of `vllm bench`\n\n"
      "`startup` and `mm-processor` are out of scope; `sweep serve`, `sweep serve_workload`, `sweep plot` and `sweep "
      "plot_pareto` are not built yet.\n";
  return page;
}

}  // namespace tokenstone::app
