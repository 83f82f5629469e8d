#include "server/json_text.h"

#include <charconv>

#include "base/text.h"

namespace tokenstone::server {
namespace {

/// What stands for each byte that must be escaped; 0: the byte itself, 'u': \u00XX.
constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> table{};
  for (int c = 0; c < 0x20; ++c) table[static_cast<std::size_t>(c)] = 'u';
  table['"'] = '"';
  table['\\'] = '\\';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  table['\b'] = 'b';
  table['\f'] = 'f';
  return table;
}();

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const char escape = kEscapes[byte];
    if (escape == 0) continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    out += '\\';
    out += escape;
    if (escape != 'u') continue;
    constexpr char kHex[] = "0123456789abcdef";
    out += "00";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  out.append(text, plain);
  out += '"';
}

void append_json_untrusted(std::string& out, std::string_view text) { append_json_string(out, to_valid_utf8(text)); }

void append_integer(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

}  // namespace tokenstone::server
