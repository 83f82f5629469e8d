#include "http/sse_parser.h"

#include "base/check.h"

namespace tokenstone::http {

void SseParser::feed(std::string_view bytes) {
  TS_CHECK(pos_ == input_.size() || overflowed_, "events of the last feed must be taken before the next feed");
  input_ = bytes;
  pos_ = 0;
  line_feed_known_ = false;
  if (mark_seen_ >= 0) skip_byte_order_mark();
}

void SseParser::reset() {
  input_ = {};
  pos_ = 0;
  line_feed_known_ = false;
  carry_.clear();
  carry_used_ = skip_line_feed_ = has_data_ = data_owned_ = overflowed_ = false;
  mark_seen_ = 0;
  name_.clear();
  comment_lines_ = unknown_lines_ = 0;
}

void SseParser::skip_byte_order_mark() {
  static constexpr std::string_view kMark = "\xEF\xBB\xBF";
  while (mark_seen_ >= 0 && pos_ < input_.size()) {
    if (input_[pos_] == kMark[static_cast<std::size_t>(mark_seen_)]) {
      ++pos_;
      if (++mark_seen_ == 3) mark_seen_ = -1;
    } else {  // not a mark after all: its bytes belong to the first line
      carry_.assign(kMark.substr(0, static_cast<std::size_t>(mark_seen_)));
      mark_seen_ = -1;
    }
  }
}

bool SseParser::next(SseEvent& event) {
  std::string_view line;
  bool in_input = false;
  while (!overflowed_ && take_line(line, in_input)) {
    if (!line.empty()) {
      read_field(line, in_input);
    } else if (dispatch(event)) {
      return true;
    }
  }
  return false;
}

bool SseParser::take_line(std::string_view& line, bool& in_input) {
  if (carry_used_) carry_.clear();
  carry_used_ = false;
  if (skip_line_feed_ && pos_ < input_.size()) {
    if (input_[pos_] == '\n') ++pos_;
    skip_line_feed_ = false;
  }
  const std::size_t end = find_line_end();
  if (end == std::string_view::npos) {
    keep_rest();
    return false;
  }
  line = input_.substr(pos_, end - pos_);
  in_input = carry_.empty();
  if (!in_input) {
    carry_.append(line);
    line = carry_;
    carry_used_ = true;
  }
  skip_line_feed_ = input_[end] == '\r';
  pos_ = end + 1;
  overflowed_ = line.size() + data_size() > max_event_bytes_;
  return !overflowed_;
}

std::size_t SseParser::find_line_end() {
  if (!line_feed_known_ || line_feed_ < pos_) {
    const std::size_t found = input_.find('\n', pos_);
    line_feed_ = found == std::string_view::npos ? input_.size() : found;
    line_feed_known_ = true;
  }
  const std::size_t carriage_return = input_.substr(0, line_feed_).find('\r', pos_);
  if (carriage_return != std::string_view::npos) return carriage_return;
  return line_feed_ < input_.size() ? line_feed_ : std::string_view::npos;
}

void SseParser::keep_rest() {
  carry_.append(input_.substr(pos_));
  pos_ = input_.size();
  own_data();
  overflowed_ = carry_.size() + data_size() > max_event_bytes_;
}

void SseParser::read_field(std::string_view line, bool in_input) {
  const std::size_t colon = line.find(':');
  if (colon == 0) {
    ++comment_lines_;
    return;
  }
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    add_data(value, in_input);
  } else if (field == "event") {
    name_ = value;
  } else if (field != "id" && field != "retry") {
    ++unknown_lines_;
  }
}

void SseParser::add_data(std::string_view value, bool in_input) {
  if (has_data_) {
    own_data();
    data_.append("\n").append(value);
  } else if (in_input) {
    data_view_ = value;
    data_owned_ = false;
  } else {
    data_.assign(value);
    data_owned_ = true;
  }
  has_data_ = true;
}

void SseParser::own_data() {
  if (!has_data_ || data_owned_) return;
  data_.assign(data_view_);
  data_owned_ = true;
}

bool SseParser::dispatch(SseEvent& event) {
  dispatched_name_.swap(name_);
  name_.clear();
  if (!has_data_) return false;
  event.data = data_owned_ ? std::string_view(data_) : data_view_;
  event.name = dispatched_name_;
  has_data_ = false;
  return true;
}

bool SseParser::finish(SseEvent& event) {
  if (overflowed_) return false;
  if (!carry_.empty() && !carry_used_) read_field(carry_, false);
  carry_.clear();
  return dispatch(event);
}

}  // namespace tokenstone::http
