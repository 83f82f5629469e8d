// The server's side of HTTP/1.1: bytes in, one request at a time out (over the http-parser library).
//
// What: feed() takes bytes up to the end of one message; bytes of the next request are left to the caller, who calls
// next() when the answer is on its way. So pipelined requests are answered in order. Content-Length and chunked bodies;
// both at once are refused. "Upgrade:" offers are ignored (the answer stays HTTP/1.1). Ownership: request() is owned by
// the parser and stays valid until next(). Threads: one at a time. Units: bytes. Failure: a message that is not HTTP,
// or is over a limit, sets error() with the status to answer with; the parser takes nothing more, and the connection
// must be closed after the answer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenstone::http {

struct Request {
  std::string method;                                        ///< upper case
  std::string target;                                        ///< as sent
  std::string path;                                          ///< without query and fragment; not percent-decoded
  std::string query;                                         ///< without the `?`
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case, in order
  std::string body;
  int minor_version = 1;   ///< HTTP/1.x
  bool keep_alive = true;  ///< what version and Connection header together say
  /// The first header of that (lower-case) name, or nothing.
  std::optional<std::string_view> header(std::string_view name) const;
};

struct RequestLimits {
  std::size_t max_head_bytes = 64 << 10;  ///< request line and headers
  std::size_t max_body_bytes = 32 << 20;
};

struct RequestError {
  int status = 400;  ///< 400, 413, 414, 431, 501
  std::string message;
};

class RequestParser {
 public:
  explicit RequestParser(RequestLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Takes bytes up to the end of the current message; returns how many. Takes none when complete or failed.
  std::size_t feed(std::string_view bytes);
  bool complete() const;
  /// True once per request: its head asked for "100 Continue", was accepted, and the body is still to come.
  bool take_continue();
  /// True when a message has begun and is not complete.
  bool in_message() const;
  const std::optional<RequestError>& error() const;
  Request& request();
  /// Forgets the complete request and makes ready for the next one.
  void next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::http
