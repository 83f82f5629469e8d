// Characters of UTF-8 text: lengths and validity.
//
// Pure functions over bytes; nothing can fail. The rules are those of Unicode's table 3-7 (well-formed byte sequences).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokenstone::token {

/// The blank mark of SentencePiece, U+2581.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";

/// What stands at the beginning of some bytes.
struct Utf8Head {
  enum Kind { whole, unfinished, wrong } kind;
  std::size_t length;  ///< bytes of the character; of `wrong`: bytes that become one U+FFFD; of `unfinished`: all that
                       ///< are there
};
/// Precondition: `bytes` is not empty.
Utf8Head utf8_head(std::string_view bytes);
bool is_valid_utf8(std::string_view text);
/// Length of the character that begins at `text[at]`, in valid UTF-8.
inline std::size_t char_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}
/// Every `from` becomes `to`. Precondition: `from` is not empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace tokenstone::token
