#include "http/stream_assembler.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::http {
namespace {

constexpr std::size_t kPageBytes = 64 * 1024;  ///< of an error page; more says nothing new
constexpr std::size_t kShownBytes = 300;       ///< of a page or event in an error line

/// The beginning of foreign bytes as one printable line.
std::string one_line(std::string_view bytes) {
  std::string line;
  bool blank = true;
  for (const char c : bytes.substr(0, kShownBytes * 2)) {
    const bool is_blank = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!is_blank || !blank) line += is_blank ? ' ' : c;
    blank = is_blank;
  }
  while (line.ends_with(' ')) line.pop_back();
  const bool cut = line.size() > kShownBytes;
  line.resize(std::min(line.size(), kShownBytes));
  line = to_valid_utf8(line);
  return cut ? line + " ..." : line;
}

bool is_done(std::string_view data) { return trim(data) == "[DONE]"; }

std::string error_line(const StreamDelta& delta) {
  std::string line = one_line(delta.error_message);
  if (line.empty()) line = "the server sent an error object without a message";
  if (delta.error_code != 0) line += fmt::format(" (code {})", delta.error_code);
  return line;
}

}  // namespace

BodyAssembler::BodyAssembler(StreamObserver& observer, AssemblerOptions options)
    : observer_(observer), options_(options), sse_(options.max_event_bytes) {}

void BodyAssembler::reset() {
  sse_.reset();
  summary_ = {};
  as_stream_ = unpacked_ = usage_on_every_token_ = true;
  ended_ = choice0_finished_ = held_ = false;
  content_type_.clear();
  page_.clear();
  last_arrived_ = kUnknownTime;
  counted_tokens_ = 0;
}

void BodyAssembler::begin(const ResponseHead& head) {
  summary_.http_status = head.status;
  content_type_ = head.content_type;
  const bool success = head.status >= 200 && head.status < 300;
  unpacked_ = head.content_encoding.empty() || head.content_encoding == "identity";
  // Without a content type the lines themselves must tell; see end_of_stream.
  as_stream_ = success && options_.streamed && (content_type_.empty() || content_type_ == "text/event-stream");
  if (!success) {
    note_failure(Failure::http_status, fmt::format("HTTP {}", head.status), head.status);
    if (!head.location.empty()) {
      summary_.error += fmt::format(": redirected to {}; redirects are not followed, give the final address",
                                    one_line(head.location));
    }
  } else if (!unpacked_) {
    note_failure(
        Failure::unsupported_content_encoding,
        fmt::format(
            "the answer is packed ({}) though identity was asked for; switch compression off on the server or proxy",
            one_line(head.content_encoding)));
    end();
  }
}

void BodyAssembler::body(std::string_view piece, TimeNs arrived) {
  if (ended_) return;
  last_arrived_ = arrived;
  if (!as_stream_) return keep_page(piece);
  if (summary_.dispatched_events == 0) keep_page(piece);
  sse_.feed(piece);
  SseEvent event;
  while (!ended_ && sse_.next(event)) take_event(event, arrived);
  if (!ended_ && sse_.overflowed()) {
    note_failure(Failure::malformed_event,
                 fmt::format("an event is longer than the limit of {} bytes", options_.max_event_bytes));
    end();
  }
}

void BodyAssembler::keep_page(std::string_view piece) {
  if (!unpacked_) return;
  const std::size_t limit = options_.streamed || as_stream_ ? kPageBytes : options_.max_event_bytes;
  page_.append(piece.substr(0, limit - std::min(limit, page_.size())));
}

void BodyAssembler::take_event(const SseEvent& event, TimeNs arrived) {
  if (held_) hand_out(true);
  if (trim(event.data).empty()) return;
  ++summary_.dispatched_events;
  if (is_done(event.data)) return take_done();
  const StreamDelta& delta = deltas_.parse(event.data);
  if (delta.kind == StreamDelta::Kind::malformed) {
    return note_failure(Failure::malformed_event, fmt::format("an event is not JSON: {}", one_line(event.data)));
  }
  if (delta.kind == StreamDelta::Kind::error) return take_error(delta);
  if (event.name == "error") {
    return note_failure(Failure::stream_error, fmt::format("the server sent an error event: {}", one_line(event.data)));
  }
  take_delta(delta, arrived);
}

void BodyAssembler::take_error(const StreamDelta& delta) {
  note_failure(Failure::stream_error, error_line(delta), delta.error_code);
}

void BodyAssembler::take_delta(const StreamDelta& delta, TimeNs arrived) {
  if (delta.kind == StreamDelta::Kind::foreign) ++summary_.foreign_events;
  const ChoiceDelta* bearer = nullptr;
  for (const ChoiceDelta& choice : delta.choices) {
    if (choice.has_token() && (bearer == nullptr || choice.index == 0)) bearer = &choice;
    if (choice.finish_reason.empty() || choice0_finished_) continue;
    summary_.finish_reason = choice.finish_reason;
    choice0_finished_ = choice.index == 0;
  }
  if (bearer != nullptr) take_token(*bearer, delta, arrived);
  // Only what is told replaces what was told before.
  const auto update = [](std::int64_t& kept, std::int64_t told) { kept = told >= 0 ? told : kept; };
  update(summary_.usage.prompt_tokens, delta.usage.prompt_tokens);
  update(summary_.usage.completion_tokens, delta.usage.completion_tokens);
  update(summary_.usage.cached_tokens, delta.usage.cached_tokens);
}

void BodyAssembler::take_token(const ChoiceDelta& choice, const StreamDelta& delta, TimeNs arrived) {
  if (summary_.first_token_event < 0) summary_.first_token_event = summary_.dispatched_events - 1;
  ++summary_.token_events;
  held_ = true;
  held_token_ = {.arrived = arrived, .tokens = tokens_of(delta)};
  held_text_.clear();
  held_token_.kind = !choice.text.empty()        ? DeltaKind::text
                     : !choice.reasoning.empty() ? DeltaKind::reasoning
                                                 : DeltaKind::tool_call;
  if (choice.index != 0) return;
  held_text_.append(choice.reasoning).append(choice.text);
  if (held_text_.empty()) held_text_ = choice.tool_text;
}

std::int32_t BodyAssembler::tokens_of(const StreamDelta& delta) {
  const std::int64_t told = delta.usage.completion_tokens;
  usage_on_every_token_ = usage_on_every_token_ && told >= 0;
  if (!usage_on_every_token_ || told <= counted_tokens_ || told - counted_tokens_ > INT32_MAX) return -1;
  const auto tokens = static_cast<std::int32_t>(told - counted_tokens_);
  counted_tokens_ = told;
  return tokens;
}

void BodyAssembler::hand_out(bool shared) {
  held_ = false;
  held_token_.shared_stamp = shared;
  observer_.on_token(held_token_, held_text_);
}

void BodyAssembler::end_of_read() {
  if (held_) hand_out(false);
}

void BodyAssembler::take_done() {
  summary_.done_seen = true;
  const bool anything = summary_.token_events > 0 || !summary_.finish_reason.empty() || summary_.usage.known();
  if (!anything) note_failure(Failure::empty_stream, "the stream ended with [DONE] and held neither text nor usage");
  end();
}

void BodyAssembler::end_of_body(bool whole) {
  if (ended_) return;
  if (as_stream_) {
    end_of_stream(whole);
  } else if (options_.streamed || summary_.failure != Failure::none) {
    end_of_page();
  } else {
    end_of_answer(whole);
  }
  if (!ended_) end();
}

void BodyAssembler::end_of_stream(bool whole) {
  SseEvent event;
  bool broken_off = false;
  if (sse_.finish(event) && !trim(event.data).empty()) {
    // No empty line ended it: it counts if it is whole, else the body was cut inside it.
    broken_off = !is_done(event.data) && deltas_.parse(event.data).kind == StreamDelta::Kind::malformed;
    if (!broken_off) take_event(event, last_arrived_);
  }
  if (ended_ || summary_.failure != Failure::none) return;
  if (summary_.dispatched_events == 0 && !broken_off && (sse_.unknown_lines() > 0 || content_type_.empty())) {
    if (!trim(page_).empty()) return end_of_page();
  }
  if (!whole || broken_off) {
    note_failure(Failure::truncated_stream, "the connection or body ended in the middle of the stream");
  } else if (summary_.dispatched_events == 0) {
    note_failure(Failure::empty_stream, "the answer held no event");
  } else if (summary_.finish_reason.empty()) {
    note_failure(Failure::truncated_stream, "the stream ended without [DONE] and without a finish_reason");
  }
}

/// A body that is no event stream: an error's text, an error object with status 200, or something foreign.
void BodyAssembler::end_of_page() {
  const std::string_view text = trim(page_);
  const bool is_error = !text.empty() && text.front() == '{' && deltas_.parse(text).kind == StreamDelta::Kind::error;
  if (summary_.failure == Failure::http_status) {
    const StreamDelta* delta = is_error ? &deltas_.parse(text) : nullptr;
    if (!text.empty()) summary_.error += ": " + one_line(delta != nullptr ? delta->error_message : text);
  } else if (is_error) {
    take_error(deltas_.parse(text));
  } else {
    note_failure(Failure::not_event_stream,
                 fmt::format("expected text/event-stream, found {}; the body begins: {}",
                             content_type_.empty() ? "no content type" : one_line(content_type_), one_line(text)));
  }
}

/// A request without streaming: one JSON object with the whole text.
void BodyAssembler::end_of_answer(bool whole) {
  if (!whole) return note_failure(Failure::truncated_stream, "the connection ended in the middle of the answer");
  const StreamDelta& delta = deltas_.parse(page_);
  if (delta.kind == StreamDelta::Kind::error) return take_error(delta);
  if (delta.kind != StreamDelta::Kind::chunk || delta.choices.empty()) {
    return note_failure(Failure::malformed_event,
                        fmt::format("expected a completion as JSON, found: {}", one_line(page_)));
  }
  ChoiceDelta choice = delta.choices.front();
  if (choice.text.empty()) choice.text = choice.message;
  if (choice.reasoning.empty()) choice.reasoning = choice.message_reasoning;
  summary_.finish_reason = choice.finish_reason;
  summary_.usage = delta.usage;
  if (choice.has_token()) take_token(choice, delta, last_arrived_);
}

void BodyAssembler::fail(Failure failure, std::string error) {
  if (ended_) return;
  note_failure(failure, std::move(error));
  end();
}

void BodyAssembler::note_failure(Failure failure, std::string error, std::int64_t code) {
  if (summary_.failure != Failure::none) return;
  summary_.failure = failure;
  summary_.error = std::move(error);
  summary_.error_code = code;
}

void BodyAssembler::end() {
  if (held_) hand_out(false);
  summary_.comment_lines = sse_.comment_lines();
  ended_ = true;
}

StreamAssembler::StreamAssembler(StreamObserver& observer, AssemblerOptions options)
    : body_(observer, options), parser_(*this) {}

std::size_t StreamAssembler::feed(std::string_view bytes, TimeNs arrived) {
  arrived_ = arrived;
  const std::size_t taken = parser_.feed(bytes);
  if (parser_.state() == ResponseParser::State::complete) {
    body_.end_of_body(true);
  } else if (parser_.state() == ResponseParser::State::failed) {
    body_.end_of_read();
    const bool headless = body_.summary().http_status == 0;
    body_.fail(headless ? Failure::not_event_stream : Failure::truncated_stream,
               fmt::format("the answer is not HTTP/1.1: {}", parser_.error()));
  } else {
    body_.end_of_read();
  }
  return taken;
}

void StreamAssembler::finish() {
  const auto before = parser_.state();
  parser_.finish();
  if (before == ResponseParser::State::waiting) {
    body_.fail(Failure::server_closed, "the server closed the connection without an answer");
  } else if (before == ResponseParser::State::head) {
    body_.fail(Failure::truncated_stream, "the connection ended inside the headers of the answer");
  } else {
    body_.end_of_body(parser_.state() == ResponseParser::State::complete);
  }
}

void StreamAssembler::reset() {
  body_.reset();
  parser_.reset();
}

}  // namespace tokenstone::http
