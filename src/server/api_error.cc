#include "server/api_error.h"

#include "server/json_text.h"

namespace tokenstone::server {
namespace {

struct StatusName {
  int status;
  std::string_view phrase, type;
};

constexpr StatusName kStatusNames[] = {
    {200, "OK", ""},
    {400, "Bad Request", "BadRequestError"},
    {401, "Unauthorized", "AuthenticationError"},
    {404, "Not Found", "NotFoundError"},
    {405, "Method Not Allowed", "MethodNotAllowedError"},
    {409, "Conflict", "ConflictError"},
    {413, "Payload Too Large", "RequestTooLargeError"},
    {414, "URI Too Long", "RequestTooLargeError"},
    {429, "Too Many Requests", "RateLimitError"},
    {431, "Request Header Fields Too Large", "RequestTooLargeError"},
    {500, "Internal Server Error", "InternalServerError"},
    {501, "Not Implemented", "NotImplementedError"},
    {503, "Service Unavailable", "ServiceUnavailableError"},
};

const StatusName& name_of(int status) {
  for (const StatusName& entry : kStatusNames)
    if (entry.status == status) return entry;
  return name_of(500);
}

}  // namespace

ApiError to_api_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::usage:
    case ErrorKind::too_large:
      return {400, error.message, error.param};
    case ErrorKind::not_found:
      return {404, error.message, error.param};
    case ErrorKind::busy:
      return {429, error.message, error.param};
    default:
      return {500, error.message, error.param};
  }
}

std::string error_body(const ApiError& error) {
  std::string body = "{\"error\":{\"message\":";
  append_json_untrusted(body, error.message);
  body += ",\"type\":";
  append_json_string(body, name_of(error.status).type);
  body += ",\"param\":";
  if (error.param.empty())
    body += "null";
  else
    append_json_untrusted(body, error.param);
  body += ",\"code\":";
  append_integer(body, error.status);
  body += "}}";
  return body;
}

std::string_view reason_phrase(int status) { return name_of(status).phrase; }

}  // namespace tokenstone::server
