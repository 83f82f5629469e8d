// One forward pass over a JSON text: the reader of stream events, which takes a few fields out of many and must not
// allocate.
//
// Why not the library: an event arrives 100,000 times a second in a buffer without padding, and a lone surrogate escape
// (a server that cut a character in two) must become U+FFFD, which simdjson 3.0 reports as an error of the whole text.
// A test holds it against nlohmann::json: both accept the same texts and read the same strings. Two tolerances, because
// Python servers write them into logprobs: NaN and +-Infinity where a value may stand.
//
// Ownership: borrows the text and a scratch area of at least the text's size, both longer than every view it hands out.
// Threads: one. Failure: each reader returns false where the text is not JSON; the cursor is then of no further use.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokenstone::http {

class JsonCursor {
 public:
  static constexpr int kMaxDepth = 256;  ///< deeper texts count as broken

  JsonCursor(std::string_view text, char* scratch)
      : at_(text.data()), end_(text.data() + text.size()), scratch_(scratch) {}

  /// First byte of the next value or mark, after blanks; 0 at the end.
  char peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }
  bool at_end() { return peek() == '\0' && at_ == end_; }

  /// Reads an object; `on_member(key)` must consume the value and return whether it could.
  template <class OnMember>
  bool object(OnMember&& on_member) {
    if (!open('{')) return false;
    if (peek() == '}') return close();
    do {
      std::string_view key;
      if (!string(key) || !take(':') || !on_member(key)) return false;
    } while (take(','));
    return peek() == '}' && close();
  }
  /// Reads an array; `on_element()` must consume the element and return whether it could.
  template <class OnElement>
  bool array(OnElement&& on_element) {
    if (!open('[')) return false;
    if (peek() == ']') return close();
    do {
      if (!on_element()) return false;
    } while (take(','));
    return peek() == ']' && close();
  }
  /// Reads a string; the view points into the text, or into the scratch area when there were escapes.
  bool string(std::string_view& out);
  /// Reads any number; what is no integer is cut towards zero, what does not fit leaves `out` as it was.
  bool integer(std::int64_t& out);
  /// Reads over any value.
  bool skip();

  /// A string into `out`; any other value is skipped and leaves `out` as it was.
  bool string_or_skip(std::string_view& out) { return peek() == '"' ? string(out) : skip(); }
  /// A number into `out`; any other value is skipped and leaves `out` as it was.
  bool integer_or_skip(std::int64_t& out) {
    const char c = peek();
    return c == '-' || (c >= '0' && c <= '9') ? integer(out) : skip();
  }

 private:
  bool open(char mark) {
    if (peek() != mark || depth_ == kMaxDepth) return false;
    ++at_;
    ++depth_;
    return true;
  }
  bool close() {
    ++at_;
    --depth_;
    return true;
  }
  bool take(char mark) {
    if (peek() != mark) return false;
    ++at_;
    return true;
  }
  bool literal(std::string_view word);
  bool number(std::string_view& digits, bool& is_integer);
  bool unescape(const char* start, std::string_view& out);
  bool escape();
  bool hex4(std::uint32_t& code);
  void put_utf8(std::uint32_t code);

  const char* at_;
  const char* end_;
  char* scratch_;
  int depth_ = 0;
};

}  // namespace tokenstone::http
