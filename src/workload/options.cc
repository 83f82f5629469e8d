#include "workload/options.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "workload/lengths.h"

namespace tokenstone::workload {
namespace {

struct Name {
  std::string_view name;
  DatasetKind kind;
};
constexpr Name kNames[] = {{"random", DatasetKind::random},       {"sonnet", DatasetKind::sonnet},
                           {"sharegpt", DatasetKind::sharegpt},   {"custom", DatasetKind::custom},
                           {"azure", DatasetKind::azure},         {"mooncake", DatasetKind::mooncake},
                           {"timed_trace", DatasetKind::mooncake}};

// vLLM's other data sets, refused by name so that nobody looks for a slip of the keyboard.
constexpr std::string_view kNotSupported[] = {"burstgpt",     "random-mm",    "random-rerank",     "hf",
                                              "custom_audio", "custom_image", "prefix_repetition", "spec_bench",
                                              "speed_bench"};

Status check_length(std::int64_t length, std::int64_t least, std::string_view flag) {
  if (length >= least && length <= kLongestLength) return {};
  return usage_error(fmt::format("{} expects {} to {}, found {}", flag, least, kLongestLength, length),
                     std::string(flag));
}

}  // namespace

std::string_view to_string(DatasetKind kind) {
  for (const Name& entry : kNames)
    if (entry.kind == kind) return entry.name;
  return "";
}

Result<DatasetKind> parse_dataset_name(std::string_view name) {
  std::vector<std::string> names;
  for (const Name& entry : kNames) {
    if (entry.name == name) return entry.kind;
    names.emplace_back(entry.name);
  }
  for (const std::string_view other : kNotSupported)
    if (other == name)
      return usage_error(
          fmt::format("--dataset-name {} of vLLM is not supported here; there are {}", name, join(names, ", ")),
          "--dataset-name");
  const auto nearest = nearest_name(name, names);
  return usage_error(fmt::format("--dataset-name expects one of {}, found \"{}\"{}", join(names, ", "), name,
                                 nearest ? "; did you mean " + *nearest + "?" : ""),
                     "--dataset-name");
}

Status WorkloadOptions::validate() const {
  if (!workload.empty() && (!dataset_name.empty() || !dataset_path.empty()))
    return usage_error("--workload makes its own requests: give either --workload or --dataset-name and --dataset-path",
                       "--workload");
  if (!(scale > 0) || scale > 100)
    return usage_error(fmt::format("--scale must be greater than 0 and at most 100, found {}", scale), "--scale");
  if (num_prompts > UINT32_MAX / 2) return usage_error("--num-prompts is too large", "--num-prompts");
  TS_TRY_STATUS(check_length(random_input_len, random_prefix_len > 0 ? 0 : 1, "--random-input-len"));
  TS_TRY_STATUS(check_length(random_output_len, 1, "--random-output-len"));
  TS_TRY_STATUS(check_length(random_prefix_len, 0, "--random-prefix-len"));
  if (const auto ratio = parse_range_ratio(random_range_ratio); !ratio) return std::unexpected(ratio.error());
  if (sharegpt_output_len) TS_TRY_STATUS(check_length(*sharegpt_output_len, 1, "--sharegpt-output-len"));
  TS_TRY_STATUS(check_length(sonnet_input_len, 1, "--sonnet-input-len"));
  TS_TRY_STATUS(check_length(sonnet_output_len, 1, "--sonnet-output-len"));
  TS_TRY_STATUS(check_length(sonnet_prefix_len, 0, "--sonnet-prefix-len"));
  if (custom_output_len != -1) TS_TRY_STATUS(check_length(custom_output_len, 1, "--custom-output-len"));
  if (timed_trace_chunk_hash_size)
    TS_TRY_STATUS(check_length(*timed_trace_chunk_hash_size, 1, "--timed-trace-chunk-hash-size"));
  if (timed_trace_sec_multiplier && !(*timed_trace_sec_multiplier > 0 && std::isfinite(*timed_trace_sec_multiplier)))
    return usage_error("--timed-trace-sec-multiplier must be greater than 0 (1: seconds, 0.001: milliseconds)",
                       "--timed-trace-sec-multiplier");
  return {};
}

void set_common_lengths(WorkloadOptions& options, std::optional<std::int64_t> input,
                        std::optional<std::int64_t> output) {
  if (input) options.random_input_len = options.sonnet_input_len = *input;
  if (output) {
    options.random_output_len = options.sonnet_output_len = options.custom_output_len = *output;
    options.sharegpt_output_len = *output;
  }
}

}  // namespace tokenstone::workload
