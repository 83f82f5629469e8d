// The embedded engine: a model, its tokenizer, scheduler, executor and output processor, sized and wired.
//
// Ownership: owns all of them; an EngineLoop made by `start` borrows from it and must go first. One EngineLoop at a
// time. Threads: `create` and the const accessors anywhere; an EngineLoop's calls on its loop's thread. Units: bytes,
// tokens, blocks. Failure: `create` gives an Error (usage) that names every bad option.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/engine_options.h"
#include "engine/loaded_model.h"
#include "engine/prompt_encoder.h"
#include "engine/text_processor.h"
#include "runtime/engine_loop.h"
#include "sched/scheduler.h"

namespace tokenstone::engine {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);

  /// Puts the engine on a loop; `steps` may be null. The loop's clock also times the forward pass.
  std::unique_ptr<runtime::EngineLoop> start(Loop& loop, record::StepSink* steps);

  const EngineOptions& options() const { return options_; }
  const ModelShape& shape() const { return shape_; }
  Precision precision() const { return precision_; }
  const std::string& served_model_name() const { return options_.served_model_name; }
  const token::Tokenizer& tokenizer() const { return *tokenizer_; }
  token::TokenizerPtr shared_tokenizer() const { return tokenizer_; }
  const TokenPromptEncoder& prompt_encoder() const { return *encoder_; }
  /// Or why chat requests are refused.
  const Result<token::ChatFamily>& chat_family() const { return chat_family_; }

  std::uint32_t threads() const { return threads_; }
  std::uint32_t num_blocks() const { return scheduler_->config().num_blocks; }
  std::uint32_t block_size() const { return scheduler_->config().block_size; }
  std::uint64_t kv_cache_tokens() const { return scheduler_->config().kv_tokens(); }
  std::uint32_t max_model_len() const { return scheduler_->config().max_model_len; }
  /// Sequences of max_model_len tokens that the KV cache holds at once, each in whole blocks (vLLM's figure).
  double max_concurrency() const;
  /// What the start log says, in vLLM's words where it has them.
  std::vector<std::string> start_log() const;
  /// What a person should know though it is no error.
  std::span<const std::string> warnings() const { return warnings_; }

  /// For tests and analysis.
  CpuExecutor& executor() { return *executor_; }
  sched::Scheduler& scheduler() { return *scheduler_; }

 private:
  Engine() = default;

  EngineOptions options_;
  ModelShape shape_;
  Precision precision_ = Precision::bfloat16;
  bool random_weights_ = false;
  std::uint32_t threads_ = 1;
  std::uint64_t kv_bytes_ = 0;
  token::TokenizerPtr tokenizer_;
  Result<token::ChatFamily> chat_family_ = token::ChatFamily::chatml;
  std::vector<std::string> warnings_;
  std::unique_ptr<CpuExecutor> executor_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unique_ptr<TextProcessor> processor_;
  std::unique_ptr<TokenPromptEncoder> encoder_;
};

}  // namespace tokenstone::engine
