// A refused request as its client sees it: an HTTP status and an OpenAI error object, written as vLLM writes it:
//   {"error":{"message":"...","type":"BadRequestError","param":"n","code":400}}
// Plain values. `message` says what was expected, what was found and what to do next.
#pragma once

#include <expected>
#include <string>

#include "base/result.h"

namespace tokenstone::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the field at fault; empty: null in the object
};

template <class T>
using ApiResult = std::expected<T, ApiError>;
using ApiStatus = ApiResult<void>;

inline std::unexpected<ApiError> refuse(int status, std::string message, std::string param = {}) {
  return std::unexpected(ApiError{status, std::move(message), std::move(param)});
}
inline std::unexpected<ApiError> bad_request(std::string message, std::string param = {}) {
  return refuse(400, std::move(message), std::move(param));
}

/// An error of the engine or the tokenizer: usage and too_large 400, not_found 404, busy 429, anything else 500.
ApiError to_api_error(const Error& error);
/// The error object; one line.
std::string error_body(const ApiError& error);
std::string_view reason_phrase(int status);

}  // namespace tokenstone::server
