// The flags of `bench serve`: vLLM's names, defaults and meanings, and our own beside them.
// Ownership: the FlagSet binds to the options, which must outlive it. Failure: validate() gives the first fault in one
// line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/flags.h"
#include "base/result.h"

namespace tokenstone::app {

struct BenchServeOptions {
  // Target
  std::string target;  ///< "engine", "sim:const"; empty: a server over HTTP
  std::optional<std::string> base_url;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::string endpoint;  ///< empty: the back end's own
  std::string backend = "openai";
  std::string model, served_model_name;
  std::string tokenizer;
  bool skip_tokenizer_init = false;
  std::vector<std::string> headers;
  std::string request_id_prefix, label;
  std::optional<double> ready_check_timeout_sec;
  double connect_timeout_sec = 10, first_token_timeout_sec = 600, gap_timeout_sec = 120, total_timeout_sec = 21600;

  // Load
  std::int64_t num_prompts = 1000;
  double request_rate = std::numeric_limits<double>::infinity();
  double burstiness = 1.0;
  std::optional<std::int64_t> max_concurrency;
  std::string duration;  ///< "60s"
  std::string stages;    ///< "1:30s,5:30s"
  double speedup = 1.0;
  std::optional<std::int64_t> num_warmups;  ///< 8, or 0 in virtual time
  std::string drain_timeout = "60s";
  std::int64_t seed = 0;
  std::int64_t num_runs = 1;

  // Content
  std::string workload;
  double scale = 1.0;
  std::string dataset_name, dataset_path;
  bool no_oversample = false, disable_shuffle = false, prompt_token_ids = false, self_timed = true;
  std::optional<std::int64_t> input_len, output_len;
  std::int64_t random_input_len = 1024, random_output_len = 128, random_prefix_len = 0;
  std::string random_range_ratio = "0.0";
  std::optional<std::int64_t> sharegpt_output_len;
  std::int64_t sonnet_input_len = 550, sonnet_output_len = 150, sonnet_prefix_len = 200;
  std::int64_t custom_output_len = 256;
  std::optional<std::int64_t> timed_trace_chunk_hash_size;
  std::optional<double> timed_trace_sec_multiplier;
  std::string timed_trace_label_timestamp = "timestamp", timed_trace_label_input_length = "input_length",
              timed_trace_label_output_length = "output_length", timed_trace_label_hash_ids = "hash_ids";
  bool ignore_eos = false;
  std::optional<double> temperature, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<std::int64_t> top_k;
  std::string extra_body;

  // Metrics and output
  std::vector<std::string> goodput;
  std::string slo;
  std::string percentile_metrics = "ttft,tpot,itl";
  std::string metric_percentiles = "99";
  bool save_result = false, save_detailed = false, append_result = false;
  std::string result_dir, result_filename;
  std::vector<std::string> metadata;
  std::string run_dir;
  bool no_run_dir = false;
  std::string json;  ///< "-" or a file
  bool full = false, quiet = false, dry_run = false;
  std::string explain;
  std::string replay;

  // Virtual time
  double sim_prefill_us_per_token = 20, sim_decode_us = 10000;
  std::int64_t sim_kv_blocks = 65536, sim_max_model_len = 131072;

  Status validate(const FlagSet::Parsed& parsed) const;
  bool is_http() const { return target.empty(); }
  bool is_sim() const { return target.starts_with("sim:"); }
  std::string url() const;
};

/// Everything but the engine's own flags (engine_flags.h).
void add_bench_serve_flags(FlagSet& flags, BenchServeOptions& options);

}  // namespace tokenstone::app
