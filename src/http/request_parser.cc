#include "http/request_parser.h"

#include <http_parser.h>

#include "base/check.h"
#include "base/text.h"

namespace tokenstone::http {

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return std::nullopt;
}

struct RequestParser::Impl {
  RequestLimits limits;
  http_parser parser{};
  Request request;
  std::optional<RequestError> error;
  std::size_t head_bytes = 0;
  bool begun = false, head_done = false, complete = false, last_was_value = false, wants_continue = false;

  explicit Impl(RequestLimits given) : limits(given) { start(); }

  void start() {
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = this;
    request = Request{};
    head_bytes = 0;
    begun = head_done = complete = last_was_value = wants_continue = false;
  }

  int refuse(int status, std::string message) {
    error = RequestError{status, std::move(message)};
    return -1;
  }

  int count_head(std::size_t bytes) {
    head_bytes += bytes;
    if (head_bytes <= limits.max_head_bytes) return 0;
    return refuse(request.headers.empty() ? 414 : 431,
                  "request line and headers are longer than " + std::to_string(limits.max_head_bytes) + " bytes");
  }

  int on_url(std::string_view part) {
    request.target += part;
    return count_head(part.size());
  }

  int on_field(std::string_view part) {
    if (last_was_value || request.headers.empty()) request.headers.emplace_back();
    last_was_value = false;
    request.headers.back().first += to_lower(part);
    return count_head(part.size());
  }

  int on_value(std::string_view part) {
    last_was_value = true;
    request.headers.back().second += part;
    return count_head(part.size() + 4);  // ": " and the line's end, so that empty headers count too
  }

  int too_large() {
    return refuse(413, "the request body is larger than the server's limit of " +
                           std::to_string(limits.max_body_bytes) +
                           " bytes; send less, or start the server with a larger --max-body-mib");
  }

  int on_head() {
    head_done = true;
    if (parser.method == HTTP_CONNECT) return refuse(501, "CONNECT is not supported; this server is no proxy");
    parser.upgrade = 0;
    request.method = http_method_str(static_cast<http_method>(parser.method));
    request.minor_version = parser.http_minor;
    const bool has_length = parser.content_length != ULLONG_MAX;
    if (has_length && parser.content_length > limits.max_body_bytes) return too_large();
    if (has_length) request.body.reserve(static_cast<std::size_t>(parser.content_length));
    split_target();
    const auto expect = request.header("expect");
    wants_continue = expect && to_lower(*expect) == "100-continue";
    return 0;
  }

  void split_target() {
    std::string_view rest = request.target;
    rest = rest.substr(0, rest.find('#'));
    const auto question = rest.find('?');
    request.path = rest.substr(0, question);
    if (question != std::string_view::npos) request.query = rest.substr(question + 1);
  }

  int on_body(std::string_view part) {
    wants_continue = false;
    if (request.body.size() + part.size() > limits.max_body_bytes) return too_large();
    request.body += part;
    return 0;
  }

  int on_complete() {
    complete = true;
    wants_continue = false;
    request.keep_alive = http_should_keep_alive(&parser) != 0;
    http_parser_pause(&parser, 1);  // the next request's bytes are the caller's
    return 0;
  }
};

RequestParser::RequestParser(RequestLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  if (impl_->complete || impl_->error || bytes.empty()) return 0;
  static const http_parser_settings settings = [] {
    http_parser_settings made;
    http_parser_settings_init(&made);
    made.on_message_begin = [](http_parser* parser) {
      static_cast<Impl*>(parser->data)->begun = true;
      return 0;
    };
    made.on_url = [](http_parser* parser, const char* at, std::size_t size) {
      return static_cast<Impl*>(parser->data)->on_url({at, size});
    };
    made.on_header_field = [](http_parser* parser, const char* at, std::size_t size) {
      return static_cast<Impl*>(parser->data)->on_field({at, size});
    };
    made.on_header_value = [](http_parser* parser, const char* at, std::size_t size) {
      return static_cast<Impl*>(parser->data)->on_value({at, size});
    };
    made.on_headers_complete = [](http_parser* parser) { return static_cast<Impl*>(parser->data)->on_head(); };
    made.on_body = [](http_parser* parser, const char* at, std::size_t size) {
      return static_cast<Impl*>(parser->data)->on_body({at, size});
    };
    made.on_message_complete = [](http_parser* parser) { return static_cast<Impl*>(parser->data)->on_complete(); };
    return made;
  }();
  const std::size_t taken = http_parser_execute(&impl_->parser, &settings, bytes.data(), bytes.size());
  if (impl_->complete) return taken;
  const auto code = HTTP_PARSER_ERRNO(&impl_->parser);
  if (code != HPE_OK && !impl_->error) {
    const int status = code == HPE_HEADER_OVERFLOW ? 431 : 400;
    impl_->error = RequestError{
        status, std::string("the bytes received are no HTTP/1.1 request: ") + http_errno_description(code)};
  }
  return taken;
}

bool RequestParser::complete() const { return impl_->complete; }
bool RequestParser::in_message() const { return impl_->begun && !impl_->complete; }
const std::optional<RequestError>& RequestParser::error() const { return impl_->error; }
Request& RequestParser::request() { return impl_->request; }

bool RequestParser::take_continue() { return std::exchange(impl_->wants_continue, false); }

void RequestParser::next() {
  TS_CHECK(impl_->complete, "next() without a complete request");
  impl_->start();
}

}  // namespace tokenstone::http
