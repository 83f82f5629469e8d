// From the bytes of one answer to its token events and its final record.
//
//   bytes + arrival stamp -> ResponseParser -> SseParser -> DeltaParser -> StreamObserver, StreamSummary
//
// An answer ends with `[DONE]` (later bytes are ignored, though the response is still read to its end, so that the
// connection can carry the next request), or with the end of its body. Ending rules and error classes are those of
// docs/formats.md; the first failure names the class, parsing goes on behind it so that the record is whole.
//
// BodyAssembler takes bodies, StreamAssembler whole responses. Ownership: borrow the observer, which outlives them.
// Threads: one. Units: ns as they are passed in. Failure: as classes in the summary; nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "http/delta_parser.h"
#include "http/response_parser.h"
#include "http/sse_parser.h"

namespace tokenstone::http {

/// The part of DESIGN's error classes that an answer's bytes can tell.
enum class Failure : std::uint8_t {
  none,
  http_status,
  stream_error,
  truncated_stream,
  malformed_event,
  not_event_stream,
  empty_stream,
  unsupported_content_encoding,
  server_closed,
};

enum class DeltaKind : std::uint8_t { text, reasoning, tool_call };

/// An event with at least one token, in any choice.
struct StreamToken {
  TimeNs arrived = kUnknownTime;
  DeltaKind kind = DeltaKind::text;
  /// How many tokens it carried, when usage stands on every token event (continuous_usage_stats); else -1.
  std::int32_t tokens = -1;
  /// A later event came in the same read: `arrived`, the stamp of the read's last bytes, is an upper bound for this
  /// one.
  bool shared_stamp = false;
};

class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  /// `text` is choice 0's: text, else reasoning, else the tool call's; empty when another choice had the token. Valid
  /// in the call.
  virtual void on_token(const StreamToken& token, std::string_view text) = 0;
};

struct StreamSummary {
  Failure failure = Failure::none;
  std::string error;            ///< one line for a person
  std::int64_t error_code = 0;  ///< the status, or the code of an error object
  int http_status = 0;
  std::string finish_reason;  ///< of choice 0; of another when choice 0 told none
  Usage usage;                ///< the last one seen
  bool done_seen = false;
  std::int64_t dispatched_events = 0;  ///< with data, up to and including [DONE]; broken ones count
  std::int64_t token_events = 0;
  std::int64_t first_token_event = -1;  ///< 0-based number among the dispatched ones
  std::int64_t foreign_events = 0;      ///< JSON of another meaning, ignored
  std::uint64_t comment_lines = 0;
};

struct AssemblerOptions {
  bool streamed = true;  ///< the request asked for an event stream; else for one JSON answer
  std::size_t max_event_bytes = SseParser::kDefaultMaxEventBytes;
};

class BodyAssembler {
 public:
  BodyAssembler(StreamObserver& observer, AssemblerOptions options);

  void begin(const ResponseHead& head);
  /// A piece of the body that arrived with the read stamped `arrived`.
  void body(std::string_view piece, TimeNs arrived);
  /// No more pieces come from this read: hands out the token event that was held back to learn of a shared stamp.
  void end_of_read();
  /// `whole`: the framing says that the body is complete.
  void end_of_body(bool whole);
  /// Ends without a body: the connection or the framing broke.
  void fail(Failure failure, std::string error);

  bool ended() const { return ended_; }
  const StreamSummary& summary() const { return summary_; }
  void reset();

 private:
  void take_event(const SseEvent& event, TimeNs arrived);
  void take_delta(const StreamDelta& delta, TimeNs arrived);
  void take_error(const StreamDelta& delta);
  void take_done();
  void take_token(const ChoiceDelta& choice, const StreamDelta& delta, TimeNs arrived);
  std::int32_t tokens_of(const StreamDelta& delta);
  void hand_out(bool shared);
  void note_failure(Failure failure, std::string error, std::int64_t code = 0);
  void keep_page(std::string_view piece);
  void end_of_page();
  void end_of_stream(bool whole);
  void end_of_answer(bool whole);
  void end();

  StreamObserver& observer_;
  AssemblerOptions options_;
  SseParser sse_;
  DeltaParser deltas_;
  StreamSummary summary_;
  bool as_stream_ = true;  ///< the body is read as an event stream; else kept as a page
  bool unpacked_ = true;
  bool ended_ = false;
  bool choice0_finished_ = false;
  std::string content_type_;
  std::string
      page_;  ///< first bytes of a body that is no (or no proper) event stream; the whole JSON answer if not streamed
  TimeNs last_arrived_ = kUnknownTime;
  // The token event held back until the next event or the end of the read.
  bool held_ = false;
  StreamToken held_token_;
  std::string held_text_;
  // Continuous usage.
  bool usage_on_every_token_ = true;
  std::int64_t counted_tokens_ = 0;
};

class StreamAssembler : private ResponseHandler {
 public:
  StreamAssembler(StreamObserver& observer, AssemblerOptions options);

  /// One read's bytes; returns how many belonged to this response (the rest, if any, to the next one).
  std::size_t feed(std::string_view bytes, TimeNs arrived);
  /// The peer ended the connection.
  void finish();
  void reset();

  /// The record is final.
  bool ended() const { return body_.ended(); }
  /// The response has been read to its end.
  bool response_complete() const { return parser_.state() == ResponseParser::State::complete; }
  bool reusable() const { return response_complete() && parser_.keep_alive(); }
  bool any_byte() const { return parser_.state() != ResponseParser::State::waiting; }
  const StreamSummary& summary() const { return body_.summary(); }

 private:
  void on_head(const ResponseHead& head) override { body_.begin(head); }
  void on_body(std::string_view piece) override { body_.body(piece, arrived_); }

  BodyAssembler body_;
  ResponseParser parser_;
  TimeNs arrived_ = kUnknownTime;
};

}  // namespace tokenstone::http
