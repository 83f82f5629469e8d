#include "engine/text_processor.h"

#include "base/check.h"

namespace tokenstone::engine {

void TextProcessor::start(SeqId seq, const sched::SamplingParams& sampling) {
  const bool added = decoders_
                         .try_emplace(seq, tokenizer_, sampling.stop, sampling.include_stop_str_in_output,
                                      sampling.skip_special_tokens)
                         .second;
  TS_CHECK(added, "a sequence was started twice");
}

runtime::OutputProcessor::Piece TextProcessor::push(SeqId seq, TokenId token) {
  const auto found = decoders_.find(seq);
  TS_CHECK(found != decoders_.end(), "a token of a sequence that was never started");
  token::StreamDecoder::Piece piece = found->second.push(token);
  return {std::move(piece.text), piece.stopped, std::move(piece.stop_reason)};
}

std::string TextProcessor::finish(SeqId seq) {
  const auto found = decoders_.find(seq);
  TS_CHECK(found != decoders_.end(), "a sequence was finished twice");
  std::string rest = found->second.finish();
  decoders_.erase(found);
  return rest;
}

}  // namespace tokenstone::engine
