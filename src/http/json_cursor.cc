#include "http/json_cursor.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace tokenstone::http {
namespace {

static_assert(std::endian::native == std::endian::little,
              "special_byte finds the first byte by counting trailing zeros");

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

/// Bit 7 of each byte that is zero; exact for the lowest such byte, which is the one looked at.
std::uint64_t zero_bytes(std::uint64_t x) { return (x - kOnes) & ~x & kHighs; }

/// The first quote, backslash or control character at or after `at`; `end` when there is none. Eight bytes at a time.
const char* special_byte(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    std::uint64_t x;
    std::memcpy(&x, at, 8);
    const std::uint64_t below_space = (x - kOnes * 0x20) & ~x & kHighs;
    const std::uint64_t hit = below_space | zero_bytes(x ^ kOnes * '"') | zero_bytes(x ^ kOnes * '\\');
    if (hit != 0) return at + std::countr_zero(hit) / 8;
  }
  while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool JsonCursor::string(std::string_view& out) {
  if (peek() != '"') return false;
  const char* const start = ++at_;
  at_ = special_byte(at_, end_);
  if (at_ == end_) return false;
  if (*at_ == '"') {
    out = std::string_view(start, static_cast<std::size_t>(at_ - start));
    ++at_;
    return true;
  }
  return *at_ == '\\' && unescape(start, out);
}

/// Escapes never grow: six bytes of \uXXXX become at most three, so that the scratch area suffices.
bool JsonCursor::unescape(const char* start, std::string_view& out) {
  const char* const begin = scratch_;
  const char* plain = start;
  while (true) {
    std::memcpy(scratch_, plain, static_cast<std::size_t>(at_ - plain));
    scratch_ += at_ - plain;
    if (at_ == end_ || static_cast<unsigned char>(*at_) < 0x20) return false;
    if (*at_++ == '"') break;
    if (!escape()) return false;
    plain = at_;
    at_ = special_byte(at_, end_);
  }
  out = std::string_view(begin, static_cast<std::size_t>(scratch_ - begin));
  return true;
}

bool JsonCursor::escape() {
  if (at_ == end_) return false;
  const char c = *at_++;
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const std::size_t place = kNames.find(c);
  if (place != std::string_view::npos) {
    *scratch_++ = kValues[place];
    return true;
  }
  std::uint32_t code = 0;
  if (c != 'u' || !hex4(code)) return false;
  if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    const char* const here = at_;
    at_ += 2;
    std::uint32_t low = 0;
    if (!hex4(low)) return false;
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at_ = here;
    }
  }
  put_utf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  return true;
}

bool JsonCursor::hex4(std::uint32_t& code) {
  if (end_ - at_ < 4) return false;
  const auto parsed = std::from_chars(at_, at_ + 4, code, 16);
  if (parsed.ec != std::errc() || parsed.ptr != at_ + 4) return false;
  at_ += 4;
  return true;
}

void JsonCursor::put_utf8(std::uint32_t code) {
  const auto put = [this](std::uint32_t byte) { *scratch_++ = static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

bool JsonCursor::literal(std::string_view word) {
  if (static_cast<std::size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

/// RFC 8259 section 6: an optional minus, digits without a leading zero, then fraction and exponent.
bool JsonCursor::number(std::string_view& digits, bool& is_integer) {
  const char* const start = at_;
  const auto run = [this] {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  };
  if (*at_ == '-') ++at_;
  if (at_ != end_ && *at_ == 'I') return is_integer = false, literal("Infinity");
  const char* const first = at_;
  if (!run() || (*first == '0' && at_ - first > 1)) return false;
  is_integer = true;
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    is_integer = false;
    if (!run()) return false;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    is_integer = false;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!run()) return false;
  }
  digits = std::string_view(start, static_cast<std::size_t>(at_ - start));
  return true;
}

bool JsonCursor::integer(std::int64_t& out) {
  std::string_view digits;
  bool is_integer = false;
  if (!number(digits, is_integer)) return false;
  if (is_integer) {
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return true;
  }
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!digits.empty() && parsed.ec == std::errc() && value > -9e18 && value < 9e18)
    out = static_cast<std::int64_t>(value);
  return true;
}

bool JsonCursor::skip() {
  switch (peek()) {
    case '"': {
      // The value is not wanted: its escapes are checked in place and undone in the scratch area, which is then given
      // back.
      char* const scratch = scratch_;
      std::string_view ignored;
      const bool whole = string(ignored);
      scratch_ = scratch;
      return whole;
    }
    case '{':
      return object([this](std::string_view) { return skip(); });
    case '[':
      return array([this] { return skip(); });
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    case 'N':
      return literal("NaN");
    case 'I':
      return literal("Infinity");
    case '\0':
      return false;
    default: {
      std::string_view digits;
      bool is_integer = false;
      return number(digits, is_integer);
    }
  }
}

}  // namespace tokenstone::http
