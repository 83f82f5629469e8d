#include "server/http_head.h"

#include <charconv>

#include "server/api_error.h"
#include "server/json_text.h"

namespace tokenstone::server {
namespace {

void append_status_line(std::string& out, int status) {
  out += "HTTP/1.1 ";
  append_integer(out, status);
  out += ' ';
  out += reason_phrase(status);
  out += "\r\nserver: tokenstone\r\n";
}

void append_connection(std::string& out, const AnswerStyle& style) {
  if (!style.keep_alive)
    out += "connection: close\r\n";
  else if (style.minor_version == 0)
    out += "connection: keep-alive\r\n";
}

}  // namespace

void append_answer(std::string& out, const AnswerStyle& style, int status, std::string_view content_type,
                   std::string_view body, std::string_view extra) {
  append_status_line(out, status);
  if (!content_type.empty()) {
    out += "content-type: ";
    out += content_type;
    out += "\r\n";
  }
  out += "content-length: ";
  append_integer(out, static_cast<std::int64_t>(body.size()));
  out += "\r\n";
  out += extra;
  append_connection(out, style);
  out += "\r\n";
  if (!style.head_only) out += body;
}

void append_stream_head(std::string& out, const AnswerStyle& style) {
  append_status_line(out, 200);
  out += "content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n";
  if (style.chunked()) out += "transfer-encoding: chunked\r\n";
  append_connection(out, AnswerStyle{style.minor_version, style.keep_alive && style.chunked(), false});
  out += "\r\n";
}

void append_piece(std::string& out, const AnswerStyle& style, std::string_view bytes) {
  if (!style.chunked()) {
    out += bytes;
    return;
  }
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr;
  out.append(digits, end);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

void append_stream_end(std::string& out, const AnswerStyle& style) {
  if (style.chunked()) out += "0\r\n\r\n";
}

}  // namespace tokenstone::server
