// A model found and checked, not yet in memory: its shape, where its weights come from, its tokenizer and chat format.
// Ownership: shares tokenizer and file. Threads: one at a time. Failure: Error (usage) with the next step.
#pragma once

#include <memory>

#include "engine/engine_options.h"
#include "engine/weight_source.h"
#include "token/tokenizer.h"

namespace tokenstone::engine {

struct LoadedModel {
  ModelShape shape;
  Precision precision = Precision::bfloat16;
  bool builtin = false;
  bool random_weights = false;
  std::unique_ptr<WeightSource> weights;
  token::TokenizerPtr tokenizer;
  /// Or the reason why chat requests are refused.
  Result<token::ChatFamily> chat_family = token::ChatFamily::chatml;
};

Result<LoadedModel> load_for_engine(const EngineOptions& options);

}  // namespace tokenstone::engine
