// What a person asks of the workload: vLLM's data-set flags with vLLM's defaults, and our own.
//
// Ownership: plain values. Threads: any. Units: lengths in tokens. Failure: one line for a person.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/random_streams.h"

namespace tokenstone::workload {

enum class DatasetKind { random, sonnet, sharegpt, custom, azure, mooncake };
std::string_view to_string(DatasetKind kind);
/// The names of `--dataset-name`; vLLM's `timed_trace` is `mooncake`.
Result<DatasetKind> parse_dataset_name(std::string_view name);

/// Looks at a file's beginning; never throws. The error lists what was tried.
Result<DatasetKind> detect_dataset(const std::filesystem::path& path);

enum class PromptForm {
  text,       ///< a string
  token_ids,  ///< exact by construction; needs a tokenizer for its vocabulary
  chat,       ///< one user message; lengths are those of its text
};

struct WorkloadOptions {
  std::string dataset_name;          ///< --dataset-name; empty: by --dataset-path, else random
  std::string dataset_path;          ///< --dataset-path
  std::string workload;              ///< --workload; excludes both above
  double scale = 1.0;                ///< --scale: lengths of workloads, laws and traces
  std::uint64_t num_prompts = 1000;  ///< --num-prompts; 0: every row of the file. Traces: their first rows
  bool no_oversample = false;        ///< --no-oversample
  bool disable_shuffle = false;      ///< --disable-shuffle: sharegpt and custom keep the file's order
  bool keep_trace_times = true;      ///< the trace's own arrival times are used, so its rows are not repeated
  PromptForm form = PromptForm::text;
  Seeds seeds;

  std::int64_t random_input_len = 1024, random_output_len = 128, random_prefix_len = 0;
  std::string random_range_ratio = "0.0";
  std::optional<std::int64_t> sharegpt_output_len;
  std::int64_t sonnet_input_len = 550, sonnet_output_len = 150, sonnet_prefix_len = 200;
  std::int64_t custom_output_len = 256;                     ///< -1: each row's output_tokens
  std::optional<std::int64_t> timed_trace_chunk_hash_size;  ///< tokens per hash id; not set: guessed from the rows
  std::optional<double> timed_trace_sec_multiplier;         ///< 0.001: milliseconds; not set: guessed from the rows
  std::string timed_trace_label_timestamp = "timestamp";
  std::string timed_trace_label_input_length = "input_length";
  std::string timed_trace_label_output_length = "output_length";
  std::string timed_trace_label_hash_ids = "hash_ids";

  Status validate() const;
};

/// vLLM's `--input-len` and `--output-len`: the lengths of whichever data set is used.
void set_common_lengths(WorkloadOptions& options, std::optional<std::int64_t> input,
                        std::optional<std::int64_t> output);

}  // namespace tokenstone::workload
