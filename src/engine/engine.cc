#include "engine/engine.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "engine/kv_plan.h"

namespace tokenstone::engine {
namespace {

Status check_options(const EngineOptions& options) {
  const std::vector<Error> faults = validate(options);
  if (faults.empty()) return {};
  std::vector<std::string> lines;
  for (const Error& fault : faults) lines.push_back(fault.message);
  return usage_error(join(lines, "; "), faults.front().param);
}

Result<sched::SchedulerConfig> scheduler_config(const EngineOptions& options, const ModelShape& shape,
                                                const KvPlan& kv) {
  TS_TRY(sched::SchedulerConfig config, sched::preset(options.variant));
  config.enable_prefix_caching = options.enable_prefix_caching;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.max_num_batched_tokens;
  config.long_prefill_token_threshold = options.long_prefill_token_threshold;
  config.block_size = options.block_size;
  config.num_blocks = kv.num_blocks;
  config.max_model_len = kv.max_model_len;
  config.eos_token_ids = shape.eos;
  TS_TRY_STATUS(sched::validate(config));
  return config;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  TS_TRY_STATUS(check_options(options));
  TS_TRY(LoadedModel model, load_for_engine(options));
  TS_TRY(KvPlan kv, plan_kv(model.shape, model.precision, options));
  TS_TRY(sched::SchedulerConfig config, scheduler_config(options, model.shape, kv));
  std::unique_ptr<Engine> engine(new Engine());
  engine->options_ = options;
  if (options.served_model_name.empty()) engine->options_.served_model_name = options.model;
  engine->shape_ = model.shape;
  engine->precision_ = model.precision;
  engine->random_weights_ = model.random_weights;
  engine->threads_ = resolved_threads(options);
  engine->kv_bytes_ = model.shape.kv_bytes_per_token(model.precision) * config.kv_tokens();
  engine->tokenizer_ = model.tokenizer;
  engine->chat_family_ = model.chat_family;
  engine->warnings_ = std::move(kv.warnings);
  engine->executor_ = std::make_unique<CpuExecutor>(
      model.shape, *model.weights,
      CpuExecutorOptions{model.precision, engine->threads_, config.num_blocks, config.block_size, nullptr});
  engine->scheduler_ = std::make_unique<sched::Scheduler>(std::move(config));
  engine->processor_ = std::make_unique<TextProcessor>(model.tokenizer);
  engine->encoder_ = std::make_unique<TokenPromptEncoder>(model.tokenizer, model.chat_family, model.shape.vocab);
  return engine;
}

std::unique_ptr<runtime::EngineLoop> Engine::start(Loop& loop, record::StepSink* steps) {
  executor_->set_clock(&loop);
  return std::make_unique<runtime::EngineLoop>(loop, *scheduler_, *executor_, processor_.get(), steps);
}

double Engine::max_concurrency() const {
  const std::uint32_t blocks_each = (max_model_len() + block_size() - 1) / block_size();
  return static_cast<double>(num_blocks()) / blocks_each;
}

std::vector<std::string> Engine::start_log() const {
  return {
      fmt::format("Model: {} ({} parameters{}), {}, {} thread{}, kernels {}", served_model_name(),
                  format_count(static_cast<std::int64_t>(shape_.parameters())),
                  random_weights_ ? ", random weights" : "", to_string(precision_), threads_, threads_ == 1 ? "" : "s",
                  kernels::to_string(kernels::default_kernels().isa)),
      fmt::format("KV cache memory: {} MiB in {} blocks of {} tokens",
                  format_figure(static_cast<double>(kv_bytes_) / 1048576.0), format_count(num_blocks()), block_size()),
      fmt::format("KV cache size: {} tokens", format_count(static_cast<std::int64_t>(kv_cache_tokens()))),
      fmt::format("Maximum concurrency for {} tokens per request: {:.2f}x", format_count(max_model_len()),
                  max_concurrency()),
  };
}

}  // namespace tokenstone::engine
