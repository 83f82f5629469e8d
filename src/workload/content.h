// What synthetic prompts say: independent draws from a vocabulary, rendered as token ids or as text of an exact token
// count.
//
// A "symbol" is a token id where there is a tokenizer, else the number of a plain English word, which counts as one
// token (nominal, and marked so). As text with a tokenizer: the drawn ids are decoded and encoded again, cut or
// extended, up to ten rounds, until the text has the asked count as the server will count it, special tokens included.
// Text draws from tokens that are whole words (" word"), for which the first round is exact with most tokenizers; a
// tokenizer that has few of them draws from printable ASCII, else from everything. What still deviates is told to the
// caller.
//
// Ownership: shares the tokenizer. Threads: any. Units: tokens.
// Failure: make() refuses token ids without a tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "record/request_spec.h"
#include "token/tokenizer.h"
#include "workload/options.h"

namespace tokenstone::workload {

/// Rounds of decoding and encoding again, as in vLLM.
inline constexpr int kFittingRounds = 10;

class Content {
 public:
  using Symbols = std::vector<TokenId>;

  static Result<std::shared_ptr<const Content>> make(PromptForm form, token::TokenizerPtr tokenizer);

  /// Appends independent draws.
  void draw(Symbols& symbols, std::int64_t count, Rng& rng) const;
  /// Gives the request a prompt of symbols.size() tokens (at least one beyond the special ones); `rng` extends a text
  /// that came out short. Gives the made length minus the asked one.
  std::int64_t fill(record::RequestSpec& spec, Symbols symbols, Rng& rng) const;
  /// Gives the request this text as its prompt, counted by the tokenizer, or estimated and marked.
  void fill_text(record::RequestSpec& spec, std::string text) const;
  /// The same for ids that a data set gives.
  void fill_ids(record::RequestSpec& spec, Symbols ids) const;

  /// Tokens of a prompt text, special ones included; without a tokenizer one per four bytes, rounded up.
  std::int64_t prompt_tokens(std::string_view text) const;
  /// The same for an answer: no special tokens.
  std::int64_t answer_tokens(std::string_view text) const;

  bool counts() const { return tokenizer_ != nullptr; }
  const token::TokenizerPtr& tokenizer() const { return tokenizer_; }

 private:
  Content(PromptForm form, token::TokenizerPtr tokenizer);
  std::string fitted_text(Symbols symbols, std::int64_t asked, Rng& rng) const;
  void put_text(record::RequestSpec& spec, std::string text) const;

  PromptForm form_;
  token::TokenizerPtr tokenizer_;
  std::int64_t special_ = 0;  ///< tokens that the tokenizer adds to each text
  Symbols vocabulary_;
};

}  // namespace tokenstone::workload
