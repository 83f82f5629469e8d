#include "http/request_writer.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::http {
namespace {

/// RFC 9110 section 5.6.2: the bytes of a token.
bool is_token_byte(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

}  // namespace

Status check_header(const Header& header) {
  if (header.name.empty() || !std::all_of(header.name.begin(), header.name.end(), is_token_byte)) {
    return usage_error(fmt::format("expected a header as NAME=VALUE, found the name '{}'", header.name), "header");
  }
  const auto breaks_line = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
  if (std::any_of(header.value.begin(), header.value.end(), breaks_line)) {
    return usage_error(fmt::format("the value of header '{}' holds a control character; remove it", header.name),
                       "header");
  }
  for (std::string_view own : {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}) {
    if (to_lower(header.name) == own) {
      return usage_error(fmt::format("header '{}' is set by Tokenstone itself; leave it out", header.name), "header");
    }
  }
  return {};
}

std::string write_request(std::string_view method, const Url& url, std::string_view path,
                          std::span<const Header> headers, std::string_view body) {
  std::string out;
  out.reserve(256 + body.size());
  out.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: ").append(url.authority());
  out.append("\r\nUser-Agent: tokenstone\r\nAccept-Encoding: identity\r\n");
  bool typed = false;
  for (const Header& header : headers) {
    out.append(header.name).append(": ").append(header.value).append("\r\n");
    typed = typed || to_lower(header.name) == "content-type";
  }
  if (!body.empty() && !typed) out.append("Content-Type: application/json\r\n");
  if (!body.empty() || method == "POST") out.append(fmt::format("Content-Length: {}\r\n", body.size()));
  out.append("\r\n").append(body);
  return out;
}

}  // namespace tokenstone::http
