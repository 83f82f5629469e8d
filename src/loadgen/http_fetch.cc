#include "loadgen/http_fetch.h"

#include <fmt/format.h>

#include <cerrno>

#include "http/response_parser.h"
#include "platform/real_loop.h"
#include "platform/socket.h"

namespace tokenstone::loadgen {
namespace {

using platform::Fd;

constexpr std::size_t kMaxBody = std::size_t{64} << 20;

std::unexpected<Error> unreachable(const http::Url& url, std::string_view what) {
  return fail(ErrorKind::unreachable,
              fmt::format("expected an HTTP server at {}, found: {}; is it running, and is the address right?",
                          url.text(), what));
}

class ReplyReader final : public http::ResponseHandler {
 public:
  HttpReply reply;
  bool packed = false, too_large = false;

  void on_head(const http::ResponseHead& head) override {
    reply.status = head.status;
    reply.content_type = head.content_type;
    packed = !head.content_encoding.empty() && head.content_encoding != "identity";
  }
  void on_body(std::string_view piece) override {
    too_large = too_large || reply.body.size() + piece.size() > kMaxBody;
    if (!too_large) reply.body.append(piece);
  }
};

Result<Fd> connect_to(const http::Url& url, TimeNs deadline) {
  TS_TRY(const auto addresses, platform::resolve(url.host, url.port));
  std::string last = "no address";
  for (const auto& address : addresses) {
    auto start = platform::start_connect(address);
    int error = start.error;
    if (error == 0 && !start.done) {
      error = platform::wait_for(start.fd.get(), true, deadline) ? platform::connect_error(start.fd.get()) : ETIMEDOUT;
    }
    if (error == 0) return std::move(start.fd);
    last = fmt::format("{} ({})", platform::errno_text(error), address.text);
  }
  return unreachable(url, last);
}

Status send_all(const http::Url& url, int fd, std::string_view bytes, TimeNs deadline) {
  while (!bytes.empty()) {
    int error = 0;
    const auto sent = platform::send_some(fd, bytes, error);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (error != EAGAIN) {
      return unreachable(url, platform::errno_text(error));
    } else if (!platform::wait_for(fd, true, deadline)) {
      return unreachable(url, "it does not take the request in time");
    }
  }
  return {};
}

Result<HttpReply> read_reply(const http::Url& url, int fd, TimeNs deadline) {
  using State = http::ResponseParser::State;
  ReplyReader reader;
  http::ResponseParser parser(reader);
  std::vector<char> buffer(64 * 1024);
  while (parser.state() != State::complete && parser.state() != State::failed && !reader.too_large) {
    if (!platform::wait_for(fd, false, deadline)) return unreachable(url, "no complete answer in time");
    const auto got = platform::receive(fd, buffer);
    if (got.bytes < 0 && got.error == EAGAIN) continue;
    if (got.bytes < 0) return unreachable(url, platform::errno_text(got.error));
    if (got.bytes > 0) {
      parser.feed(std::string_view(buffer.data(), static_cast<std::size_t>(got.bytes)));
      continue;
    }
    parser.finish();
    if (parser.state() != State::complete) return unreachable(url, "the connection ended before the answer did");
  }
  if (parser.state() == State::failed)
    return unreachable(url, fmt::format("an answer that is not HTTP ({})", parser.error()));
  if (reader.too_large) return unreachable(url, fmt::format("an answer of more than {} bytes", kMaxBody));
  if (reader.packed) return unreachable(url, "a packed answer though none was asked for; switch compression off");
  return std::move(reader.reply);
}

Result<HttpReply> exchange(const http::Url& url, const std::string& request, TimeNs timeout) {
  const TimeNs deadline = platform::monotonic_now() + timeout;
  TS_TRY(const Fd fd, connect_to(url, deadline));
  TS_TRY_STATUS(send_all(url, fd.get(), request, deadline));
  return read_reply(url, fd.get(), deadline);
}

}  // namespace

Result<HttpReply> http_get(const http::Url& url, std::string_view path, std::span<const http::Header> headers,
                           TimeNs timeout) {
  return exchange(url, http::write_request("GET", url, http::join_path(url, path), headers, {}), timeout);
}

Result<HttpReply> http_post(const http::Url& url, std::string_view path, std::span<const http::Header> headers,
                            std::string_view body, TimeNs timeout) {
  return exchange(url, http::write_request("POST", url, http::join_path(url, path), headers, body), timeout);
}

std::vector<http::Header> with_api_key(std::vector<http::Header> headers, std::string_view api_key) {
  if (!api_key.empty()) headers.push_back({"Authorization", "Bearer " + std::string(api_key)});
  return headers;
}

}  // namespace tokenstone::loadgen
