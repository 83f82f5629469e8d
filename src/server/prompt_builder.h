// Decoded requests into what the engine takes: token ids within the vocabulary and the context, sampling values, seeds.
// Ownership: borrows the model. Threads: one. Failure: an ApiError (400) with the numbers; nothing is submitted then.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/engine_loop.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace tokenstone::server {

class PromptBuilder {
 public:
  explicit PromptBuilder(const ServedModel& model) : model_(model) {}

  struct Built {
    std::vector<runtime::EngineRequest> requests;  ///< one per prompt
    std::vector<std::string> echoes;               ///< one per prompt with echo, else none
  };
  ApiResult<Built> build(const GenerationRequest& request, const std::string& request_id);
  ApiStatus check_model(const std::string& name) const;
  ApiResult<std::vector<TokenId>> chat_tokens(std::span<const token::ChatTurn> turns, bool add_special) const;
  std::vector<TokenId> text_tokens(std::string_view text, bool add_special) const;

 private:
  ApiResult<std::vector<std::vector<TokenId>>> all_tokens(const GenerationRequest& request) const;
  ApiStatus check_tokens(std::span<const TokenId> tokens) const;
  ApiResult<std::int32_t> max_tokens(const GenerationRequest& request, std::size_t prompt_tokens) const;
  std::uint64_t next_seed();

  const ServedModel& model_;
  std::uint64_t seeds_drawn_ = 0;
};

}  // namespace tokenstone::server
