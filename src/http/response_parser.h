// One HTTP/1.x response at a time: bytes in; head, body pieces and the end out. Framing by the http-parser library.
//
// Understands chunked bodies (extensions, trailers), Content-Length, bodies that end with the connection, 1xx answers
// in front (skipped), and several responses on one connection: `feed` stops after one and says how much it took.
//
// Ownership: borrows the handler, which outlives it; body views are valid during the call. Threads: one. Units: bytes.
// Failure: `State::failed` with a reason for bytes that are not HTTP; `finish` (end of the connection) tells a whole
// answer from a cut one by `State`.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tokenstone::http {

struct ResponseHead {
  int status = 0;
  std::string content_type;      ///< lower case, without parameters; empty when there is none
  std::string content_encoding;  ///< lower case; empty when there is none
  std::string location;
};

class ResponseHandler {
 public:
  virtual ~ResponseHandler() = default;
  virtual void on_head(const ResponseHead& head) = 0;
  virtual void on_body(std::string_view piece) = 0;
};

class ResponseParser {
 public:
  struct Impl;  ///< opaque
  enum class State { waiting, head, body, complete, failed };

  explicit ResponseParser(ResponseHandler& handler);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Takes bytes up to the end of one response; returns how many. Nothing is taken once complete or failed.
  std::size_t feed(std::string_view bytes);
  /// The connection ended. A body without a length is complete by it; anything else unfinished stays in its state.
  void finish();
  /// Ready for the next response on the same connection.
  void reset();

  /// waiting: no byte yet.
  State state() const;
  /// After complete: whether the connection may carry another request.
  bool keep_alive() const;
  /// After failed: what was wrong.
  std::string_view error() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::http
