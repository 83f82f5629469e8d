#include "engine/prompt_encoder.h"

#include <fmt/format.h>

namespace tokenstone::engine {

Result<std::vector<TokenId>> TokenPromptEncoder::encode(const runtime::RequestSpec& request) const {
  if (const auto* text = std::get_if<std::string>(&request.prompt)) return encode_text(*text);
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.prompt)) return check_ids(*ids);
  std::vector<token::ChatTurn> turns;
  for (const auto& message : std::get<std::vector<runtime::ChatMessage>>(request.prompt))
    turns.push_back({message.role, message.content});
  return encode_chat(turns);
}

/// Special tokens written out in the text become their ids, as the server (and vLLM's) reads a text prompt.
Result<std::vector<TokenId>> TokenPromptEncoder::encode_text(std::string_view text) const {
  return check_ids(tokenizer_->encode(text, {.add_special = true, .parse_special = true}));
}

/// A rendered template holds its special tokens as text; one that begins with the begin-of-text token gets no second
/// one.
Result<std::vector<TokenId>> TokenPromptEncoder::encode_chat(std::span<const token::ChatTurn> turns) const {
  if (!family_) return std::unexpected(family_.error());
  TS_TRY(const std::string text, token::render_chat(*family_, turns));
  std::vector<TokenId> ids = tokenizer_->encode(text, {.add_special = true, .parse_special = true});
  const TokenId bos = tokenizer_->bos();
  if (bos != kNoToken && ids.size() >= 2 && ids[0] == bos && ids[1] == bos) ids.erase(ids.begin());
  return check_ids(ids);
}

Result<std::vector<TokenId>> TokenPromptEncoder::check_ids(std::span<const TokenId> ids) const {
  for (const TokenId id : ids)
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocab_)
      return usage_error(
          fmt::format("expected token ids from 0 to {}, found {}; use the model's own tokenizer", vocab_ - 1, id),
          "prompt");
  return std::vector<TokenId>(ids.begin(), ids.end());
}

}  // namespace tokenstone::engine
