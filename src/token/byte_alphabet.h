// GPT-2's way to write any byte as a visible character, in which byte-level vocabularies are stored: printable bytes
// stand for themselves, the other 68 are U+0100, U+0101, ... in order. So a blank is "\u0120" and " the" is stored as
// "\u0120the".
//
// Pure functions. Source: bytes_to_unicode in GPT-2's encoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tokenstone::token {

/// The bytes that such a text stands for; nothing if it has a character outside the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace tokenstone::token
