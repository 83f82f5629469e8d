#include "server/metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace tokenstone::server {
namespace {

// vLLM's buckets (vllm/v1/metrics/loggers.py).
const std::vector<double> kTtftBuckets{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                       1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
const std::vector<double> kItlBuckets{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                      0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
const std::vector<double> kLatencyBuckets{0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                                          30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};

/// 1, 2, 5, 10, 20, 50 ... up to `highest`.
std::vector<double> one_two_five(double highest) {
  std::vector<double> bounds;
  for (double decade = 1;; decade *= 10)
    for (const double mantissa : {1.0, 2.0, 5.0}) {
      if (mantissa * decade > highest) return bounds;
      bounds.push_back(mantissa * decade);
    }
}

/// As Python's client writes floats: 1.0, 0.025.
std::string number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

void append_head(std::string& page, std::string_view name, std::string_view type, std::string_view help) {
  page += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

Histogram::Histogram(std::vector<double> upper_bounds)
    : bounds_(std::move(upper_bounds)), counts_(bounds_.size() + 1, 0) {}

void Histogram::observe(double value) {
  const auto place = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(place)];
  ++count_;
  sum_ += value;
}

void Histogram::append(std::string& page, std::string_view name, std::string_view labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    page += fmt::format("{}_bucket{{{},le=\"{}\"}} {}.0\n", name, labels, bound, below);
  }
  page += fmt::format("{0}_count{{{1}}} {2}.0\n{0}_sum{{{1}}} {3}\n", name, labels, count_, number(sum_));
}

ServerMetrics::ServerMetrics(const ServedModel& model)
    : labels_(fmt::format("engine=\"0\",model_name=\"{}\"", label_value(model.names.front()))),
      cache_labels_(fmt::format(
          "block_size=\"{}\",cache_dtype=\"{}\",enable_prefix_caching=\"{}\",engine=\"0\",num_gpu_blocks=\"{}\"",
          model.block_size, label_value(model.cache_dtype), model.prefix_caching ? "True" : "False", model.num_blocks)),
      ttft_(kTtftBuckets),
      itl_(kItlBuckets),
      tpot_(kItlBuckets),
      e2e_(kLatencyBuckets),
      queue_(kLatencyBuckets),
      prefill_(kLatencyBuckets),
      decode_(kLatencyBuckets),
      inference_(kLatencyBuckets),
      prompt_tokens_(one_two_five(model.max_model_len)),
      generation_tokens_(one_two_five(model.max_model_len)) {}

void ServerMetrics::first_token(TimeNs waited) { ttft_.observe(to_seconds(waited)); }
void ServerMetrics::next_tokens(TimeNs gap) { itl_.observe(to_seconds(gap)); }

void ServerMetrics::finished(const runtime::EngineTiming& timing, TimeNs received, TimeNs first_token,
                             sched::FinishReason reason) {
  if (reason == sched::FinishReason::stop)
    ++stopped_;
  else if (reason == sched::FinishReason::length)
    ++length_;
  else if (reason == sched::FinishReason::error)
    ++errors_;
  else
    ++aborted_;
  prompt_tokens_.observe(timing.prompt_tokens);
  generation_tokens_.observe(timing.output_tokens);
  if (timing.finished == kUnknownTime) return;
  e2e_.observe(to_seconds(timing.finished - received));
  if (timing.scheduled_prefill == kUnknownTime) return;
  queue_.observe(to_seconds(timing.scheduled_prefill - received));
  inference_.observe(to_seconds(timing.finished - timing.scheduled_prefill));
  if (first_token == kUnknownTime) return;
  prefill_.observe(to_seconds(first_token - timing.scheduled_prefill));
  decode_.observe(to_seconds(timing.finished - first_token));
  if (timing.output_tokens > 1) tpot_.observe(to_seconds(timing.finished - first_token) / (timing.output_tokens - 1));
}

std::string ServerMetrics::page(const runtime::EngineStats& stats) const {
  std::string page;
  page.reserve(32 << 10);
  const auto single = [&](std::string_view name, std::string_view type, std::string_view help, double value) {
    append_head(page, name, type, help);
    page += fmt::format("{}{{{}}} {}\n", name, labels_, number(value));
  };
  const auto histogram = [&](std::string_view name, std::string_view help, const Histogram& values) {
    append_head(page, name, "histogram", help);
    values.append(page, name, labels_);
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    single(name, "counter", help, static_cast<double>(value));
  };
  append_head(page, "vllm:cache_config_info", "gauge", "Information of the engine's KV cache configuration");
  page += fmt::format("vllm:cache_config_info{{{}}} 1.0\n", cache_labels_);
  single("vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", stats.running);
  single("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", stats.waiting);
  single("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", stats.kv_cache_usage());
  counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.",
          stats.prefix_query_tokens);
  counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.",
          stats.prefix_hit_tokens);
  counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", stats.preemptions);
  counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", stats.prompt_tokens);
  counter("vllm:generation_tokens_total", "Number of generation tokens processed.", stats.generation_tokens);
  append_head(page, "vllm:request_success_total", "counter", "Count of successfully processed requests.");
  const std::pair<std::string_view, std::uint64_t> reasons[] = {
      {"stop", stopped_}, {"length", length_}, {"abort", aborted_}, {"error", errors_}};
  for (const auto& [reason, count] : reasons)
    page += fmt::format("vllm:request_success_total{{engine=\"0\",finished_reason=\"{}\",{}}} {}.0\n", reason,
                        labels_.substr(11), count);
  histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttft_);
  histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", itl_);
  histogram("vllm:time_per_output_token_seconds",
            "Histogram of inter-token latency in seconds; vLLM's older name for it.", itl_);
  histogram("vllm:request_time_per_output_token_seconds", "Histogram of time per output token of a request in seconds.",
            tpot_);
  histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", e2e_);
  histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", queue_);
  histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", inference_);
  histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", prefill_);
  histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", decode_);
  histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", prompt_tokens_);
  histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", generation_tokens_);
  return page;
}

}  // namespace tokenstone::server
