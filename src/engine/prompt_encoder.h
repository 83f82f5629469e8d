// Prompt text and chat messages into token ids, as the model's own tokenizer and chat template have it.
// Ownership: shares the tokenizer. Threads: any. Failure: an unknown chat template, or ids outside the vocabulary, as
// Error.
#pragma once

#include <span>

#include "runtime/engine_target.h"
#include "token/tokenizer.h"

namespace tokenstone::engine {

class TokenPromptEncoder final : public runtime::PromptEncoder {
 public:
  /// `family` may be the Error that chat requests then get.
  TokenPromptEncoder(token::TokenizerPtr tokenizer, Result<token::ChatFamily> family, std::uint32_t vocab)
      : tokenizer_(std::move(tokenizer)), family_(std::move(family)), vocab_(vocab) {}

  Result<std::vector<TokenId>> encode(const runtime::RequestSpec& request) const override;
  Result<std::vector<TokenId>> encode_text(std::string_view text) const;
  Result<std::vector<TokenId>> encode_chat(std::span<const token::ChatTurn> turns) const;
  /// Ids as they are, if the model has them all.
  Result<std::vector<TokenId>> check_ids(std::span<const TokenId> ids) const;

 private:
  token::TokenizerPtr tokenizer_;
  Result<token::ChatFamily> family_;
  std::uint32_t vocab_;
};

}  // namespace tokenstone::engine
