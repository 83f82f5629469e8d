#include "token/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "token/utf8.h"

namespace tokenstone::token {
namespace {

constexpr unsigned kFirstStandIn = 0x100;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::uint16_t, 256> character{};  ///< of a byte
  std::array<std::int16_t, 512> byte{};        ///< of a character, -1 for none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte) byte = -1;
  unsigned stand_in = kFirstStandIn;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned character = stands_for_itself(byte) ? byte : stand_in++;
    alphabet.character[byte] = static_cast<std::uint16_t>(character);
    alphabet.byte[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    if (head.kind != Utf8Head::whole || head.length > 2) return std::nullopt;
    unsigned character = static_cast<unsigned char>(text[0]);
    if (head.length == 2) character = ((character & 0x1F) << 6) | (static_cast<unsigned char>(text[1]) & 0x3F);
    if (character >= kAlphabet.byte.size() || kAlphabet.byte[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[character]);
    text.remove_prefix(head.length);
  }
  return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const unsigned character = kAlphabet.character[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | (character >> 6));
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

}  // namespace tokenstone::token
