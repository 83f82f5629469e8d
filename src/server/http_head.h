// The head of an answer and the frames of a chunked body. Appends to a connection's output; never fails.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokenstone::server {

/// What the request's own head says about how to answer it.
struct AnswerStyle {
  int minor_version = 1;  ///< HTTP/1.0 knows no chunks: its streams end with the connection
  bool keep_alive = true;
  bool head_only = false;  ///< a HEAD request: everything but the body
  bool chunked() const { return minor_version >= 1; }
};

/// A whole answer with a body of known length. `extra` holds complete further header lines.
void append_answer(std::string& out, const AnswerStyle& style, int status, std::string_view content_type,
                   std::string_view body, std::string_view extra = {});
/// The head of an event stream.
void append_stream_head(std::string& out, const AnswerStyle& style);
/// One piece of a stream's body: a chunk of its own, or the bare bytes for HTTP/1.0.
void append_piece(std::string& out, const AnswerStyle& style, std::string_view bytes);
void append_stream_end(std::string& out, const AnswerStyle& style);

}  // namespace tokenstone::server
