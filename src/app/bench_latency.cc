// `tokenstone bench latency`: one batch on the embedded engine, again and again, as `vllm bench latency` does it.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/flag_tables.h"
#include "app/offline_engine.h"
#include "base/rng.h"
#include "base/text.h"
#include "record/append_file.h"
#include "stats/quantile.h"
#include "stats/sample.h"

namespace tokenstone::app {
namespace {

constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};

struct LatencyFlags {
  std::string model, tokenizer, output_json, json;
  std::int64_t input_len = 32, output_len = 128, batch_size = 8, num_iters_warmup = 10, num_iters = 30, seed = 0, n = 1;
  bool disable_detokenize = false;
  EngineFlags engine;

  LatencyFlags() { engine.options.enable_prefix_caching = false; }
};

FlagSet latency_flags(LatencyFlags& f) {
  FlagSet flags(
      "bench latency",
      "The latency of one batch on the embedded engine, with random token ids, as vllm bench latency measures it.");
  flags.group("Batch")
      .add("model", &f.model, "NAME", "a shape or a file; tiny-15m unless given")
      .add("tokenizer", &f.tokenizer, "PATH", "the model's own unless given")
      .add("input-len", &f.input_len, "N", "prompt tokens of each sequence", {"input-tokens"})
      .add("output-len", &f.output_len, "N", "output tokens of each sequence", {"output-tokens"})
      .add("batch-size", &f.batch_size, "N", "sequences in the batch")
      .add("n", &f.n, "N", "samples per prompt: 1 is what there is")
      .add("num-iters-warmup", &f.num_iters_warmup, "N", "batches that are not counted")
      .add("num-iters", &f.num_iters, "N", "batches that are")
      .add("seed", &f.seed, "N", "of prompts, sampling and random weights")
      .group("Output")
      .add("output-json", &f.output_json, "FILE", "vLLM's JSON: avg_latency, latencies, percentiles")
      .add("json", &f.json, "FILE", "the same; - for stdout and nothing else there");
  add_engine_flags(flags, f.engine);
  add_foreign_engine_flags(flags);
  flags.accept("disable-detokenize", false, "text is made as tokens come and costs next to nothing")
      .refuse("use-beam-search", "beam search is not supported")
      .refuse("profile", "use perf on the process");
  return flags;
}

Status check(const LatencyFlags& f) {
  for (const auto& [name, value] : {std::pair{"input-len", f.input_len}, std::pair{"output-len", f.output_len},
                                    std::pair{"batch-size", f.batch_size}, std::pair{"num-iters", f.num_iters}})
    if (value < 1) return usage_error(fmt::format("--{} must be at least 1, not {}", name, value), name);
  if (f.num_iters_warmup < 0) return usage_error("--num-iters-warmup must be 0 or more", "num-iters-warmup");
  if (f.n != 1) return usage_error(fmt::format("--n {} is not supported: one sample per prompt", f.n), "n");
  return {};
}

/// The same batch in every iteration, as in vLLM: ids from the first 10,000 of the vocabulary.
std::vector<runtime::EngineRequest> make_batch(const LatencyFlags& f, const engine::Engine& engine) {
  const auto top = static_cast<std::int64_t>(std::min<std::size_t>(10000, engine.shape().vocab)) - 1;
  Rng rng(static_cast<std::uint64_t>(f.seed), streams::prompts);
  std::vector<runtime::EngineRequest> batch(static_cast<std::size_t>(f.batch_size));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].request_id = fmt::format("latency-{}", i);
    for (std::int64_t t = 0; t < f.input_len; ++t)
      batch[i].prompt.push_back(static_cast<TokenId>(rng.uniform_int(0, top)));
    batch[i].sampling.max_tokens = static_cast<std::int32_t>(f.output_len);
    batch[i].sampling.ignore_eos = true;
    batch[i].sampling.seed = static_cast<std::uint64_t>(f.seed) + i;
  }
  return batch;
}

std::string to_json(const std::vector<double>& latencies, const LatencyFlags& f, double output_tokens) {
  stats::Sample sample;
  for (const double s : latencies) sample.add(s);
  nlohmann::ordered_json out = {
      {"avg_latency", sample.mean()}, {"latencies", latencies}, {"percentiles", nlohmann::ordered_json::object()}};
  for (const int p : kPercentiles) out["percentiles"][std::to_string(p)] = sample.quantile(p / 100.0).value;
  out["input_len"] = f.input_len;
  out["output_len"] = f.output_len;
  out["batch_size"] = f.batch_size;
  out["output_tokens_per_second"] = output_tokens / sample.mean();
  out["checks"] = nlohmann::ordered_json::array();  // this benchmark has no objective of its own
  return out.dump(2) + "\n";
}

Status report(const std::vector<double>& latencies, const LatencyFlags& f, double output_tokens) {
  const std::string json = to_json(latencies, f, output_tokens);
  for (const std::string& path : {f.output_json, f.json})
    if (!path.empty() && path != "-") TS_TRY_STATUS(record::write_file_atomically(path, json));
  if (f.json == "-") {
    std::fputs(json.c_str(), stdout);
    return {};
  }
  stats::Sample sample;
  for (const double s : latencies) sample.add(s);
  fmt::print("Avg latency: {:.6g} seconds\n", sample.mean());
  for (const int p : kPercentiles)
    fmt::print("{}% percentile latency: {:.6g} seconds\n", p, sample.quantile(p / 100.0).value);
  fmt::print("{} sequences of {} in, {} out: {} output tok/s over {} batches (spread {} % of the mean)\n", f.batch_size,
             f.input_len, f.output_len, format_figure(output_tokens / sample.mean()), latencies.size(),
             sample.count() > 1 ? format_figure(100 * sample.sample_std() / sample.mean()) : "n/a");
  return {};
}

Status run(const LatencyFlags& f) {
  TS_TRY_STATUS(check(f));
  EngineFlags engine_flags = f.engine;
  engine_flags.options.seed = static_cast<std::uint64_t>(f.seed);
  TS_TRY(const auto engine, OfflineEngine::create(engine_flags, f.model, f.tokenizer));
  for (const std::string& line : engine->engine().start_log()) fmt::print(stderr, "{}\n", line);
  std::vector<double> latencies;
  double output_tokens = 0;
  for (std::int64_t i = 0; i < f.num_iters_warmup + f.num_iters; ++i) {
    TS_TRY(const OfflineResult result, engine->run(make_batch(f, engine->engine())));
    if (i < f.num_iters_warmup) continue;
    latencies.push_back(to_seconds(result.elapsed));
    output_tokens = static_cast<double>(result.output_tokens);
  }
  return report(latencies, f, output_tokens);
}

}  // namespace

FlagSet bench_latency_flag_table() {
  static LatencyFlags unread;
  return latency_flags(unread);
}

int run_bench_latency(const Args& args) {
  LatencyFlags f;
  FlagSet flags = latency_flags(f);
  return run_parsed(flags, args, [&] { return run(f); });
}

}  // namespace tokenstone::app
