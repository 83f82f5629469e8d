#include "app/bench_options.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::app {
namespace {

void add_target_flags(FlagSet& flags, BenchServeOptions& o) {
  flags.group("Target")
      .add("base-url", &o.base_url, "URL", "the server; http://HOST:PORT of the flags below unless given")
      .add("target", &o.target, "TARGET",
           "engine: the embedded engine in this process; sim:const: virtual time; instead of a server")
      .add("host", &o.host, "HOST", "the server's host")
      .add("port", &o.port, "N", "the server's port")
      .add("backend", &o.backend, "NAME", "openai (text completions) or openai-chat; vllm is the same as openai")
      .add("endpoint", &o.endpoint, "PATH", "/v1/completions or /v1/chat/completions, by back end")
      .add("model", &o.model, "NAME", "the server's first model unless given; with --target engine a shape or a file")
      .add("served-model-name", &o.served_model_name, "NAME", "the name in the requests, when it differs from --model")
      .add("tokenizer", &o.tokenizer, "PATH",
           "tokenizer.json, tokenizer.model, GGUF or folder; the server's /tokenize unless given")
      .add("skip-tokenizer-init", &o.skip_tokenizer_init, "", "no tokenizer at all: prompt lengths are nominal")
      .add("header", &o.headers, "K=V ...", "headers of every request")
      .add("request-id-prefix", &o.request_id_prefix, "TEXT", "of the x-request-id header")
      .add("ready-check-timeout-sec", &o.ready_check_timeout_sec, "S",
           "try for this long until the server answers one request that no measured prompt shares; 0: connect only; "
           "once unless given")
      .add("connect-timeout", &o.connect_timeout_sec, "S", "per request; 0: none")
      .add("first-token-timeout", &o.first_token_timeout_sec, "S", "per request; 0: none")
      .add("gap-timeout", &o.gap_timeout_sec, "S", "between two reads of one stream; 0: none")
      .add("total-timeout", &o.total_timeout_sec, "S", "per request; 0: none");
}

void add_load_flags(FlagSet& flags, BenchServeOptions& o) {
  flags.group("Load")
      .add("num-prompts", &o.num_prompts, "N", "requests", {"n"})
      .add("request-rate", &o.request_rate, "RATE", "mean arrivals per second; inf: all at once")
      .add("burstiness", &o.burstiness, "B", "gamma shape of the gaps: 1 Poisson, below burstier, inf constant")
      .add("max-concurrency", &o.max_concurrency, "N", "open requests at most; with an infinite rate a closed loop")
      .add("duration", &o.duration, "TIME", "a fixed window, such as 60s, instead of a count")
      .add("stages", &o.stages, "R:T,...", "rates one after the other: 1:30s,5:30s,20:30s")
      .add("speedup", &o.speedup, "X", "play a trace X times as fast")
      .add("self-timed", &o.self_timed, "", "use a trace's own instants unless a rate is given")
      .add("num-warmups", &o.num_warmups, "N", "requests before the run, in no figure (8; 0 in virtual time)")
      .add("drain-timeout", &o.drain_timeout, "TIME", "by duration: how long answers are waited for after the window")
      .add("seed", &o.seed, "N", "of arrivals, lengths, prompts, sampling")
      .add("num-runs", &o.num_runs, "N", "repeat; mean and spread of every metric");
}

void add_content_flags(FlagSet& flags, BenchServeOptions& o) {
  flags.group("Prompts")
      .add("workload", &o.workload, "NAME", "chat, generate, summarize, long or mixed")
      .add("scale", &o.scale, "X", "multiply the lengths of workloads and traces")
      .add("dataset-name", &o.dataset_name, "NAME", "random, sonnet, sharegpt, custom, azure, mooncake (timed_trace)")
      .add("dataset-path", &o.dataset_path, "FILE", "the data set's file")
      .add("no-oversample", &o.no_oversample, "", "do not repeat rows when there are too few")
      .add("disable-shuffle", &o.disable_shuffle, "", "keep the file's order")
      .add("prompt-token-ids", &o.prompt_token_ids, "", "send token ids instead of text (completions)")
      .add("input-len", &o.input_len, "N", "prompt tokens of random and sonnet", {"input-tokens"})
      .add("output-len", &o.output_len, "N", "output tokens, whichever data set", {"output-tokens"})
      .add("random-input-len", &o.random_input_len, "N", "prompt tokens")
      .add("random-output-len", &o.random_output_len, "N", "output tokens")
      .add("random-range-ratio", &o.random_range_ratio, "R",
           "lengths uniform within (1-R, 1+R); or {\"input\":R,\"output\":R}")
      .add("random-prefix-len", &o.random_prefix_len, "N", "tokens that all prompts share, before the rest")
      .add("sharegpt-output-len", &o.sharegpt_output_len, "N", "instead of the recorded answers' lengths")
      .add("sonnet-input-len", &o.sonnet_input_len, "N", "prompt tokens")
      .add("sonnet-output-len", &o.sonnet_output_len, "N", "output tokens")
      .add("sonnet-prefix-len", &o.sonnet_prefix_len, "N", "shared tokens")
      .add("custom-output-len", &o.custom_output_len, "N", "output tokens; -1: each row's output_tokens")
      .add("timed-trace-chunk-hash-size", &o.timed_trace_chunk_hash_size, "N",
           "tokens per hash id; guessed and printed unless given")
      .add("timed-trace-sec-multiplier", &o.timed_trace_sec_multiplier, "X",
           "seconds per unit of time; guessed and printed unless given")
      .add("timed-trace-label-timestamp", &o.timed_trace_label_timestamp, "KEY", "name of the field")
      .add("timed-trace-label-input-length", &o.timed_trace_label_input_length, "KEY", "name of the field")
      .add("timed-trace-label-output-length", &o.timed_trace_label_output_length, "KEY", "name of the field")
      .add("timed-trace-label-hash-ids", &o.timed_trace_label_hash_ids, "KEY", "name of the field");
  flags.group("Sampling")
      .add("ignore-eos", &o.ignore_eos, "",
           "go on to the asked length; on for random prompts, length laws and traces unless --no-ignore-eos")
      .add("temperature", &o.temperature, "T", "the server's default unless given")
      .add("top-p", &o.top_p, "P", "")
      .add("top-k", &o.top_k, "K", "")
      .add("min-p", &o.min_p, "P", "")
      .add("frequency-penalty", &o.frequency_penalty, "X", "")
      .add("presence-penalty", &o.presence_penalty, "X", "")
      .add("repetition-penalty", &o.repetition_penalty, "X", "")
      .add("extra-body", &o.extra_body, "JSON", "merged into every request's body");
}

void add_output_flags(FlagSet& flags, BenchServeOptions& o) {
  flags.group("Objectives and output")
      .add("goodput", &o.goodput, "K:MS ...", "per-request limits: ttft:200 tpot:50 e2el:5000")
      .add("slo", &o.slo, "LIMITS", "the objective: \"ttft.p99<500ms, tpot.p99<50ms\"; missed: exit 2")
      .add("percentile-metrics", &o.percentile_metrics, "LIST", "blocks with --metric-percentiles in the JSON")
      .add("metric-percentiles", &o.metric_percentiles, "LIST", "percentiles of those blocks")
      .add("save-result", &o.save_result, "", "write vLLM's result JSON")
      .add("save-detailed", &o.save_detailed, "", "with per-request arrays")
      .add("append-result", &o.append_result, "", "append to the file instead, one object a line")
      .add("result-dir", &o.result_dir, "DIR", "where vLLM's JSON goes")
      .add("result-filename", &o.result_filename, "NAME", "its name")
      .add("metadata", &o.metadata, "K=V ...", "keys of your own in the result")
      .add("label", &o.label, "TEXT", "in the result and its file name")
      .add("run-dir", &o.run_dir, "DIR", "the run's folder (runs/<id>)")
      .add("no-run-dir", &o.no_run_dir, "", "leave no folder")
      .add("json", &o.json, "FILE", "result.json; - for stdout and nothing else there")
      .add("full", &o.full, "", "a longer summary")
      .add("quiet", &o.quiet, "", "the summary's first line only")
      .add("dry-run", &o.dry_run, "", "print the schedule and send nothing")
      .add("explain", &o.explain, "KEY", "what a metric means, here and in vLLM")
      .add("replay", &o.replay, "RUN", "repeat a saved run's plan");
  flags.group("Virtual time (--target sim:const)")
      .add("sim-prefill-us-per-token", &o.sim_prefill_us_per_token, "US", "a step lasts this for each prefill token")
      .add("sim-decode-us", &o.sim_decode_us, "US", "plus this if it decodes anything")
      .add("sim-kv-blocks", &o.sim_kv_blocks, "N", "KV blocks of the simulated device")
      .add("sim-max-model-len", &o.sim_max_model_len, "N", "context of the simulated model");
}

void add_foreign_flags(FlagSet& flags) {
  flags.accept("disable-tqdm", false, "the progress line goes away by itself when stderr is no terminal")
      .accept("tokenizer-mode", true, "there is one mode")
      .accept("trust-remote-code", false, "no code of a model is ever run")
      .accept("use-beam-search", false, "vLLM reads it nowhere either")
      .accept("no-stream", false, "it concerns Hugging Face data sets, which are not loaded from a hub")
      .accept("enable-multimodal-chat", false, "prompts are text")
      .accept("skip-chat-template", false, "prompts are sent as they are; chat templates are the server's")
      .accept("no-reranker", false, "there is no rerank data set")
      .accept("random-batch-size", true, "it concerns embeddings");
  struct Refusal {
    const char* why;
    std::vector<const char*> names;
  };
  static const std::vector<Refusal> refusals = {
      {"adapters (LoRA) are not chosen by this client; name one with --served-model-name",
       {"lora-modules", "lora-assignment"}},
      {"log-probabilities are not read from streams", {"logprobs"}},
      {"HTTPS is not built yet", {"insecure"}},
      {"server profilers are not driven by this client", {"profile", "profile-batch-threshold", "profile-duration"}},
      {"charts are not built yet; requests.csv and events.bin hold the data",
       {"plot-timeline", "timeline-itl-thresholds", "plot-dataset-stats"}},
      {"ramps are not built yet; use --stages", {"ramp-up-strategy", "ramp-up-start-rps", "ramp-up-end-rps"}},
      {"probes beside the load are not built yet", {"probe-request-rate"}},
      {"multi-turn sessions are not built yet",
       {"multi-turn", "multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns", "multi-turn-concurrency",
        "multi-turn-delay-ms", "multi-turn-prefix-global-ratio", "multi-turn-prefix-conversation-ratio",
        "per-turn-input-len"}},
      {"sweeps inside one call are not built; call once per point",
       {"sweep-max-concurrency", "sweep-request-rate", "sweep-num-prompts-factor", "sweep-summary-percentiles"}},
      {"comparing two results is not built yet", {"compare"}},
      {"the plateau window is not built; use --duration",
       {"steady-state-threshold", "steady-state-min-window", "no-steady-state"}},
      {"the length filter is not built; requests above the server's max_model_len are refused before the run",
       {"max-model-len"}},
      {"the bimodal cache workload is not built; use --random-prefix-len or a trace",
       {"random-cache-hit-fraction", "random-cache-ratio"}},
      {"resetting the server's prefix cache is not built yet; prompts differ by seed, so nothing is shared between two "
       "runs",
       {"reset-prefix-cache"}},
      {"prompts are sent as they are; set the server's template arguments by --extra-body", {"chat-template-kwargs"}},
      {"multimodal prompts are not supported",
       {"random-mm-base-items-per-request", "random-mm-num-mm-items-range-ratio", "random-mm-limit-mm-per-prompt",
        "random-mm-bucket-config", "custom-ensure-client-side-data", "asr-min-audio-len-sec", "asr-max-audio-len-sec"}},
      {"this data set is not built",
       {"spec-bench-output-len", "spec-bench-category", "speed-bench-dataset-subset", "speed-bench-output-len",
        "speed-bench-category", "speed-bench-max-input-len", "prefix-repetition-prefix-len",
        "prefix-repetition-suffix-len", "prefix-repetition-num-prefixes", "prefix-repetition-output-len",
        "blazedit-min-distance", "blazedit-max-distance", "bfcl-categories"}},
      {"data sets are read from files, not from a hub",
       {"hf-subset", "hf-split", "hf-name", "hf-output-len", "hf-text-column"}},
  };
  for (const Refusal& refusal : refusals)
    for (const char* name : refusal.names) flags.refuse(name, refusal.why);
}

Status positive(double value, const char* flag, const char* what) {
  if (value > 0) return {};
  return usage_error(fmt::format("--{} must be above 0 ({}), not {}", flag, what, value), flag);
}

}  // namespace

void add_bench_serve_flags(FlagSet& flags, BenchServeOptions& options) {
  add_target_flags(flags, options);
  add_load_flags(flags, options);
  add_content_flags(flags, options);
  add_output_flags(flags, options);
  add_foreign_flags(flags);
}

std::string BenchServeOptions::url() const { return base_url.value_or(fmt::format("http://{}:{}", host, port)); }

Status BenchServeOptions::validate(const FlagSet::Parsed& parsed) const {
  if (!target.empty() && (base_url || parsed.was_given("host") || parsed.was_given("port")))
    return usage_error("--target and --base-url (or --host, --port) exclude each other; give one of them", "target");
  if (!target.empty() && target != "engine" && target != "sim:const") {
    if (target.find("://") != std::string::npos)
      return usage_error(fmt::format("--target takes engine or sim:const; a server goes to --base-url {}", target),
                         "target");
    return usage_error(
        fmt::format("unknown --target '{}': there are engine and sim:const; other simulated devices are not built yet",
                    target),
        "target");
  }
  if (backend != "openai" && backend != "openai-chat" && backend != "vllm")
    return usage_error(
        fmt::format("--backend '{}' is not built; use openai, openai-chat or vllm (the same as openai)", backend),
        "backend");
  if (!endpoint.empty() && endpoint[0] != '/')
    return usage_error(fmt::format("--endpoint must begin with '/', such as /v1/completions, not '{}'", endpoint),
                       "endpoint");
  if (port < 1 || port > 65535) return usage_error(fmt::format("--port must be 1 to 65535, not {}", port), "port");
  if (num_prompts < 1)
    return usage_error(fmt::format("--num-prompts must be at least 1, not {}", num_prompts), "num-prompts");
  TS_TRY_STATUS(positive(request_rate, "request-rate", "requests per second, or inf"));
  TS_TRY_STATUS(positive(burstiness, "burstiness", "1 is Poisson, below 1 burstier, inf constant"));
  TS_TRY_STATUS(positive(speedup, "speedup", "2 plays a trace in half the time"));
  TS_TRY_STATUS(positive(scale, "scale", "1 keeps the lengths"));
  if (max_concurrency && *max_concurrency < 1)
    return usage_error(fmt::format("--max-concurrency must be at least 1, not {}", *max_concurrency),
                       "max-concurrency");
  if (num_warmups && *num_warmups < 0) return usage_error("--num-warmups must be 0 or more", "num-warmups");
  if (num_runs < 1) return usage_error("--num-runs must be at least 1", "num-runs");
  for (const auto& [name, value] : {std::pair{"duration", &duration}, std::pair{"drain-timeout", &drain_timeout}}) {
    if (value->empty()) continue;
    const auto time = parse_duration(*value);
    if (!time || (*time <= 0 && std::string_view(name) == "duration"))
      return usage_error(fmt::format("--{} needs a time such as 60s or 2m, not '{}'", name, *value), name);
  }
  if (!duration.empty() && std::isinf(request_rate) && !max_concurrency && stages.empty() && dataset_path.empty())
    return usage_error(
        "--duration with an infinite rate has no end to the requests: give --request-rate or --max-concurrency",
        "duration");
  if (!stages.empty() && parsed.was_given("request-rate"))
    return usage_error("--stages and --request-rate exclude each other: a stage has its own rate", "stages");
  if (!stages.empty() && !duration.empty())
    return usage_error("--stages and --duration exclude each other: the stages' lengths add up to the duration",
                       "stages");
  if (!workload.empty() && (!dataset_name.empty() || !dataset_path.empty()))
    return usage_error("--workload and --dataset-name/--dataset-path exclude each other", "workload");
  if (no_run_dir && !run_dir.empty()) return usage_error("--run-dir and --no-run-dir exclude each other", "run-dir");
  if (prompt_token_ids && backend == "openai-chat")
    return usage_error("--prompt-token-ids needs text completions: chat takes messages; use --backend openai",
                       "prompt-token-ids");
  if (append_result && result_filename.empty() && result_dir.empty() && !save_result) return {};
  for (const double timeout : {connect_timeout_sec, first_token_timeout_sec, gap_timeout_sec, total_timeout_sec})
    if (timeout < 0) return usage_error("time limits are seconds of 0 (none) or more");
  if (sim_prefill_us_per_token < 0 || sim_decode_us < 0)
    return usage_error("--sim-prefill-us-per-token and --sim-decode-us must be 0 or more", "sim-decode-us");
  return {};
}

}  // namespace tokenstone::app
