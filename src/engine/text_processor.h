// Tokens of running sequences into text, one StreamDecoder each.
// Ownership: shares the tokenizer. Threads: the engine loop's. Failure: none; `push` and `finish` of an unknown
// sequence stop.
#pragma once

#include <unordered_map>

#include "runtime/output_processor.h"
#include "token/tokenizer.h"

namespace tokenstone::engine {

class TextProcessor final : public runtime::OutputProcessor {
 public:
  explicit TextProcessor(token::TokenizerPtr tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void start(SeqId seq, const sched::SamplingParams& sampling) override;
  Piece push(SeqId seq, TokenId token) override;
  std::string finish(SeqId seq) override;

 private:
  token::TokenizerPtr tokenizer_;
  std::unordered_map<SeqId, token::StreamDecoder> decoders_;
};

}  // namespace tokenstone::engine
