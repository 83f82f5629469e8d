// `tokenstone bench throughput`: everything at once on the embedded engine, as `vllm bench throughput` does it;
// received tokens only.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/flag_tables.h"
#include "app/offline_engine.h"
#include "base/text.h"
#include "record/append_file.h"
#include "workload/source.h"

namespace tokenstone::app {
namespace {

struct ThroughputFlags {
  std::string model, tokenizer, output_json, json, workload, dataset_name = "sharegpt", dataset_path;
  double scale = 1.0;
  std::int64_t num_prompts = 1000, num_warmups = 0, seed = 0, n = 1, random_input_len = 1024, random_output_len = 128,
               prefix_len = 0;
  std::string random_range_ratio = "0.0";
  std::optional<std::int64_t> input_len, output_len;
  bool no_oversample = false;
  EngineFlags engine;
};

FlagSet throughput_flags(ThroughputFlags& f) {
  FlagSet flags("bench throughput",
                "The throughput of the embedded engine with every request queued at once. Tokens are counted as "
                "received, never as asked.");
  flags.group("Requests")
      .add("model", &f.model, "NAME", "a shape or a file; tiny-15m unless given")
      .add("tokenizer", &f.tokenizer, "PATH", "the model's own unless given")
      .add("num-prompts", &f.num_prompts, "N", "requests")
      .add("dataset-name", &f.dataset_name, "NAME",
           "random, sonnet, sharegpt (without a path a built-in length law), custom, azure, mooncake")
      .add("dataset-path", &f.dataset_path, "FILE", "the data set's file", {"dataset"})
      .add("workload", &f.workload, "NAME", "chat, generate, summarize, long or mixed, instead of a data set")
      .add("scale", &f.scale, "X", "multiply the lengths of workloads, laws and traces")
      .add("input-len", &f.input_len, "N", "prompt tokens of random and sonnet", {"input-tokens"})
      .add("output-len", &f.output_len, "N", "output tokens", {"output-tokens"})
      .add("random-input-len", &f.random_input_len, "N", "of the data set random")
      .add("random-output-len", &f.random_output_len, "N", "of the data set random")
      .add("random-range-ratio", &f.random_range_ratio, "R", "lengths uniform within (1-R, 1+R)")
      .add("prefix-len", &f.prefix_len, "N", "tokens that all prompts share", {"random-prefix-len"})
      .add("no-oversample", &f.no_oversample, "", "do not repeat rows when there are too few")
      .add("num-warmups", &f.num_warmups, "N", "requests before the measurement, with prompts of their own")
      .add("n", &f.n, "N", "samples per prompt: 1 is what there is")
      .add("seed", &f.seed, "N", "of lengths, prompts, sampling and random weights")
      .group("Output")
      .add("output-json", &f.output_json, "FILE", "vLLM's JSON: elapsed_time, num_requests, total_num_tokens, ...")
      .add("json", &f.json, "FILE", "the same; - for stdout and nothing else there");
  add_engine_flags(flags, f.engine);
  add_foreign_engine_flags(flags);
  flags.accept("backend", true, "the embedded engine is what runs")
      .accept("async-engine", false, "the engine has one loop")
      .accept("disable-detokenize", false, "text is made as tokens come and costs next to nothing")
      .accept("prequeue-requests", false, "all requests are queued before the first step anyway")
      .accept("enable-multimodal-chat", false, "prompts are text")
      .refuse("lora-path", "adapters (LoRA) are not supported")
      .refuse("lora-assignment", "adapters (LoRA) are not supported")
      .refuse("hf-subset", "data sets are read from files")
      .refuse("hf-split", "data sets are read from files")
      .refuse("hf-name", "data sets are read from files")
      .refuse("profile", "use perf on the process");
  return flags;
}

Status check(const ThroughputFlags& f) {
  if (f.num_prompts < 1)
    return usage_error(fmt::format("--num-prompts must be at least 1, not {}", f.num_prompts), "num-prompts");
  if (f.num_warmups < 0) return usage_error("--num-warmups must be 0 or more", "num-warmups");
  if (f.n != 1) return usage_error(fmt::format("--n {} is not supported: one sample per prompt", f.n), "n");
  return {};
}

Result<std::unique_ptr<workload::RequestSource>> make_source(const ThroughputFlags& f, const engine::Engine& engine) {
  workload::WorkloadOptions w;
  w.workload = f.workload;
  if (f.workload.empty()) w.dataset_name = f.dataset_name;
  w.dataset_path = f.dataset_path;
  w.scale = f.scale;
  w.num_prompts = static_cast<std::uint64_t>(f.num_prompts);
  w.no_oversample = f.no_oversample;
  w.keep_trace_times = false;
  w.form = workload::PromptForm::token_ids;
  w.seeds = workload::Seeds(static_cast<std::uint64_t>(f.seed));
  w.random_input_len = f.random_input_len;
  w.random_output_len = f.random_output_len;
  w.random_prefix_len = f.prefix_len;
  w.random_range_ratio = f.random_range_ratio;
  workload::set_common_lengths(w, f.input_len, f.output_len);
  return workload::make_source(w, engine.shared_tokenizer());
}

Result<runtime::EngineRequest> to_request(record::RequestSpec spec, const engine::Engine& engine) {
  if (spec.prompt_len + spec.output_len > static_cast<std::int64_t>(engine.max_model_len()))
    return usage_error(fmt::format(
        "request {} needs {} tokens ({} prompt + {} output), the model's max_model_len is {}; shorten the lengths or "
        "give --scale",
        spec.index, spec.prompt_len + spec.output_len, spec.prompt_len, spec.output_len, engine.max_model_len()));
  runtime::EngineRequest request;
  request.request_id = spec.request_id;
  TS_TRY(request.prompt, engine.prompt_encoder().encode(spec));
  request.sampling = spec.sampling;
  request.sampling.max_tokens = static_cast<std::int32_t>(spec.output_len);
  request.sampling.ignore_eos = true;
  return request;
}

Result<std::vector<runtime::EngineRequest>> make_requests(const workload::RequestSource& source,
                                                          const engine::Engine& engine, std::uint64_t n, bool warmup) {
  std::vector<runtime::EngineRequest> requests;
  for (std::uint32_t i = 0; i < n; ++i) {
    TS_TRY(auto request, to_request(warmup ? source.warmup(i) : source.at(i), engine));
    requests.push_back(std::move(request));
  }
  return requests;
}

Status report(const OfflineResult& r, const ThroughputFlags& f) {
  const double seconds = to_seconds(r.elapsed);
  const double total = static_cast<double>(r.input_tokens + r.output_tokens);
  const nlohmann::ordered_json json = {{"elapsed_time", seconds},
                                       {"num_requests", r.finished},
                                       {"total_num_tokens", r.input_tokens + r.output_tokens},
                                       {"requests_per_second", static_cast<double>(r.finished) / seconds},
                                       {"tokens_per_second", total / seconds},
                                       {"total_input_tokens", r.input_tokens},
                                       {"total_output_tokens", r.output_tokens},
                                       {"input_tokens_per_second", static_cast<double>(r.input_tokens) / seconds},
                                       {"output_tokens_per_second", static_cast<double>(r.output_tokens) / seconds},
                                       {"checks", nlohmann::ordered_json::array()}};  // no objective of its own
  for (const std::string& path : {f.output_json, f.json})
    if (!path.empty() && path != "-") TS_TRY_STATUS(record::write_file_atomically(path, json.dump(2) + "\n"));
  if (f.json == "-") {
    std::puts(json.dump(2).c_str());
    return {};
  }
  fmt::print("Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n",
             static_cast<double>(r.finished) / seconds, total / seconds,
             static_cast<double>(r.output_tokens) / seconds);
  fmt::print("Total num prompt tokens:  {}\nTotal num output tokens:  {}\n", r.input_tokens, r.output_tokens);
  fmt::print("{} requests in {} s, input {} tokens/s\n", format_count(static_cast<std::int64_t>(r.finished)),
             format_figure(seconds), format_figure(static_cast<double>(r.input_tokens) / seconds));
  return {};
}

Status run(const ThroughputFlags& f) {
  TS_TRY_STATUS(check(f));
  EngineFlags engine_flags = f.engine;
  engine_flags.options.seed = static_cast<std::uint64_t>(f.seed);
  TS_TRY(const auto offline, OfflineEngine::create(engine_flags, f.model, f.tokenizer));
  for (const std::string& line : offline->engine().start_log()) fmt::print(stderr, "{}\n", line);
  TS_TRY(const auto source, make_source(f, offline->engine()));
  for (const std::string& note : source->info().notes) fmt::print(stderr, "note: {}\n", note);
  TS_TRY(auto requests, make_requests(*source, offline->engine(), source->planned(), false));
  TS_TRY(auto warmups, make_requests(*source, offline->engine(), static_cast<std::uint64_t>(f.num_warmups), true));
  TS_TRY_STATUS(offline->run(std::move(warmups)));
  TS_TRY(const OfflineResult result, offline->run(std::move(requests)));
  return report(result, f);
}

}  // namespace

FlagSet bench_throughput_flag_table() {
  static ThroughputFlags unread;
  return throughput_flags(unread);
}

int run_bench_throughput(const Args& args) {
  ThroughputFlags f;
  FlagSet flags = throughput_flags(f);
  return run_parsed(flags, args, [&] { return run(f); });
}

}  // namespace tokenstone::app
