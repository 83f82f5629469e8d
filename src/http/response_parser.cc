#include "http/response_parser.h"

#include <http_parser.h>

#include "base/text.h"

namespace tokenstone::http {

struct ResponseParser::Impl {
  http_parser parser;
  ResponseHandler* handler = nullptr;
  State state = State::waiting;
  bool keep_alive = false;
  bool interim = false;  ///< a 1xx answer is being read
  std::string error;
  ResponseHead head;
  std::string name, value;  ///< the header being read
  bool in_value = false;

  void end_header();
  void start();
};

void ResponseParser::Impl::start() {
  http_parser_init(&parser, HTTP_RESPONSE);
  parser.data = this;
  state = State::waiting;
  keep_alive = interim = in_value = false;
  error.clear();
  head.status = 0;
  head.content_type.clear();
  head.content_encoding.clear();
  head.location.clear();
  name.clear();
  value.clear();
}

void ResponseParser::Impl::end_header() {
  if (!in_value) return;
  in_value = false;
  const std::string lower = to_lower(name);
  if (lower == "content-type") {
    head.content_type = to_lower(trim(std::string_view(value).substr(0, value.find(';'))));
  } else if (lower == "content-encoding") {
    head.content_encoding = to_lower(trim(value));
  } else if (lower == "location") {
    head.location = value;
  }
  name.clear();
  value.clear();
}

namespace {

ResponseParser::Impl& self(http_parser* parser) { return *static_cast<ResponseParser::Impl*>(parser->data); }

int on_begin(http_parser* parser) {
  self(parser).state = ResponseParser::State::head;
  return 0;
}

int on_field(http_parser* parser, const char* at, std::size_t size) {
  auto& impl = self(parser);
  impl.end_header();
  impl.name.append(at, size);
  return 0;
}

int on_value(http_parser* parser, const char* at, std::size_t size) {
  auto& impl = self(parser);
  impl.in_value = true;
  impl.value.append(at, size);
  return 0;
}

int on_headers_complete(http_parser* parser) {
  auto& impl = self(parser);
  impl.end_header();
  impl.interim = parser->status_code >= 100 && parser->status_code < 200;
  if (impl.interim) return 0;
  impl.head.status = static_cast<int>(parser->status_code);
  impl.state = ResponseParser::State::body;
  impl.handler->on_head(impl.head);
  return 0;
}

int on_body(http_parser* parser, const char* at, std::size_t size) {
  self(parser).handler->on_body(std::string_view(at, size));
  return 0;
}

int on_complete(http_parser* parser) {
  auto& impl = self(parser);
  if (impl.interim) {  // its headers say nothing about the answer that follows
    impl.interim = false;
    impl.head = {};
    return 0;
  }
  impl.state = ResponseParser::State::complete;
  impl.keep_alive = http_should_keep_alive(parser) != 0;
  http_parser_pause(parser, 1);
  return 0;
}

const http_parser_settings kSettings = [] {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_message_begin = on_begin;
  settings.on_header_field = on_field;
  settings.on_header_value = on_value;
  settings.on_headers_complete = on_headers_complete;
  settings.on_body = on_body;
  settings.on_message_complete = on_complete;
  return settings;
}();

}  // namespace

ResponseParser::ResponseParser(ResponseHandler& handler) : impl_(std::make_unique<Impl>()) {
  impl_->handler = &handler;
  impl_->start();
}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::feed(std::string_view bytes) {
  if (bytes.empty() || impl_->state == State::complete || impl_->state == State::failed) return 0;
  const std::size_t taken = http_parser_execute(&impl_->parser, &kSettings, bytes.data(), bytes.size());
  if (impl_->state == State::complete) return taken;
  const auto problem = HTTP_PARSER_ERRNO(&impl_->parser);
  if (problem != HPE_OK || impl_->parser.upgrade) {
    impl_->state = State::failed;
    impl_->error = problem != HPE_OK ? http_errno_description(problem) : "an upgrade that was not asked for";
  }
  return taken;
}

void ResponseParser::finish() {
  if (impl_->state != State::body) return;
  http_parser_execute(&impl_->parser, &kSettings, nullptr, 0);  // completes a body that ends with the connection
  if (impl_->state == State::complete) impl_->keep_alive = false;
}

void ResponseParser::reset() { impl_->start(); }
ResponseParser::State ResponseParser::state() const { return impl_->state; }
bool ResponseParser::keep_alive() const { return impl_->keep_alive; }
std::string_view ResponseParser::error() const { return impl_->error; }

}  // namespace tokenstone::http
