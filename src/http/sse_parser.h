// Server-sent events: bytes in, events out, whatever the borders of the reads.
//
// The format (WHATWG HTML, section "Server-sent events"): lines end with LF, CR or CRLF; a line is `field: value` with
// one optional blank after the colon; lines that begin with a colon are comments; `data` lines are joined with LF; an
// empty line ends the event. A byte-order mark at the very start is skipped. Example: `: ping\n\ndata: a\ndata:b\n\n`
// is one event, "a\nb".
//
// Ownership: `feed` borrows the bytes until the next `feed`; an event's views are valid until the next call of `next`,
// `finish`, `feed` or `reset`. An event that lies within one read is not copied.
// Threads: one. Units: bytes. Failure: an event above `max_event_bytes` sets `overflowed` and ends the parsing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokenstone::http {

struct SseEvent {
  std::string_view data;
  std::string_view name;  ///< of an `event` field; empty: message
};

class SseParser {
 public:
  static constexpr std::size_t kDefaultMaxEventBytes = std::size_t{8} << 20;

  explicit SseParser(std::size_t max_event_bytes = kDefaultMaxEventBytes) : max_event_bytes_(max_event_bytes) {}

  /// Precondition: `next` has returned false since the last feed.
  void feed(std::string_view bytes);
  /// The next complete event of the bytes fed so far. One whose `data` field is there but empty is an event (data "").
  bool next(SseEvent& event);
  /// At the end of the stream: the event that no empty line ended, if it has data. Whether it is whole, the caller must
  /// judge.
  bool finish(SseEvent& event);
  /// Forgets everything; keeps its buffers.
  void reset();

  bool overflowed() const { return overflowed_; }
  std::uint64_t comment_lines() const { return comment_lines_; }
  /// Lines with a field name that the format does not know; a page that is no event stream consists of such lines.
  std::uint64_t unknown_lines() const { return unknown_lines_; }

 private:
  bool take_line(std::string_view& line, bool& in_input);
  std::size_t find_line_end();
  void skip_byte_order_mark();
  void keep_rest();
  void read_field(std::string_view line, bool in_input);
  void add_data(std::string_view value, bool in_input);
  void own_data();
  bool dispatch(SseEvent& event);
  std::size_t data_size() const { return !has_data_ ? 0 : data_owned_ ? data_.size() : data_view_.size(); }

  std::size_t max_event_bytes_;
  // The bytes of the current feed.
  std::string_view input_;
  std::size_t pos_ = 0;
  std::size_t line_feed_ = 0;  ///< place of the first LF at or after pos_; input_.size() when there is none
  bool line_feed_known_ = false;
  // What is kept between feeds.
  std::string carry_;            ///< the unfinished line
  bool carry_used_ = false;      ///< carry_ was handed out as a line
  bool skip_line_feed_ = false;  ///< the last line ended with CR: an LF that follows belongs to it
  int mark_seen_ = 0;            ///< bytes of the byte-order mark seen; -1: its place is past
  // The event being built.
  std::string data_;
  std::string_view data_view_;  ///< its only data line, while it lies in input_
  bool has_data_ = false, data_owned_ = false;
  std::string name_, dispatched_name_;
  bool overflowed_ = false;
  std::uint64_t comment_lines_ = 0, unknown_lines_ = 0;
};

}  // namespace tokenstone::http
