// The JSON bodies of requests, read and checked field by field.
//
// What passes, what is refused: a field that we act on is checked for type and range; one that we know and do not act
// on passes at values that ask for nothing (field_rules.h), else 400 by name; an unknown field is 400 with the nearest
// known name. null always means "not given". Ownership: plain values. Threads: a RequestDecoder is used by one thread
// at a time. Failure: an ApiError (400) that names the field; nothing has been done yet when it is returned.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sched/request.h"
#include "server/api_error.h"
#include "token/tokenizer.h"

namespace tokenstone::server {

using PromptInput = std::variant<std::string, std::vector<TokenId>>;

/// A body of /v1/completions or /v1/chat/completions.
struct GenerationRequest {
  bool chat = false;
  std::string model;                      ///< empty: whatever is served
  std::vector<PromptInput> prompts;       ///< completions: at least one
  std::vector<token::ChatTurn> messages;  ///< chat: at least one
  sched::SamplingParams sampling;         ///< max_tokens and seed are filled from the two fields below
  std::optional<std::int64_t> max_tokens;
  std::optional<std::uint64_t> seed;
  bool add_special_tokens = true;  ///< begin-of-text and the like; never twice
  bool stream = false, include_usage = false, continuous_usage = false, echo = false;
  std::string cache_salt, request_id;
};

struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;
  std::vector<token::ChatTurn> messages;  ///< used when there is no prompt
  bool add_special_tokens = true;
  bool return_token_strs = false;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};

class RequestDecoder {
 public:
  RequestDecoder();
  ~RequestDecoder();
  ApiResult<GenerationRequest> completion(std::string& body);
  ApiResult<GenerationRequest> chat(std::string& body);
  ApiResult<TokenizeRequest> tokenize(std::string& body);
  ApiResult<DetokenizeRequest> detokenize(std::string& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::server
