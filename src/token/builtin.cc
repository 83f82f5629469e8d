// The tokenizer of the built-in shapes. Random weights give random tokens, so every id must be readable: words are
// syllables after a blank (" ka", " kalo", " kalomi"), numbered shortest first. A word's number follows from its
// syllables, so there is no table: with S = 95 syllables, word (a) is a, word (a, b) is S + a*S + b, word (a, b, c) is
// S + S*S + (a*S + b)*S + c.
#include <array>

#include <fmt/format.h>

#include "base/check.h"
#include "token/tokenizer.h"

namespace tokenstone::token {
namespace {

constexpr std::string_view kConsonants = "bcdfghjklmnprstvwyz";
constexpr std::string_view kVowels = "aeiou";
constexpr std::size_t kSyllables = kConsonants.size() * kVowels.size();
constexpr std::size_t kMostSyllables = 3;
constexpr std::size_t kBytes = 256;
constexpr std::array<std::string_view, 3> kSpecials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

constexpr std::string_view kChatMl =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::optional<std::size_t> syllable_at(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return std::nullopt;
  const std::size_t consonant = kConsonants.find(text[at]), vowel = kVowels.find(text[at + 1]);
  if (consonant == std::string_view::npos || vowel == std::string_view::npos) return std::nullopt;
  return consonant * kVowels.size() + vowel;
}

/// Printable bytes and line ends as they are; the rest as "<E6>", so that text stays ASCII.
std::string byte_text(std::size_t byte) {
  const bool plain = (byte >= 0x20 && byte < 0x7F) || byte == '\n' || byte == '\t' || byte == '\r';
  return plain ? std::string(1, static_cast<char>(byte)) : fmt::format("<{:02X}>", byte);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class BuiltinTokenizer final : public Tokenizer {
 public:
  explicit BuiltinTokenizer(std::size_t size) : size_(size), words_(size - kBytes - kSpecials.size()) {
    TS_CHECK(words_ <= kSyllables + kSyllables * kSyllables + kSyllables * kSyllables * kSyllables,
             "vocabulary too large");
  }

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      const Found found = longest(text, options.parse_special);
      ids.push_back(static_cast<TokenId>(found.id));
      text.remove_prefix(found.length);
    }
    return ids;
  }

  std::string token_bytes(TokenId id, bool) const override {
    if (id < 0 || static_cast<std::size_t>(id) >= size_) return {};
    const auto number = static_cast<std::size_t>(id);
    if (number < kBytes) return byte_text(number);
    if (number < kBytes + words_) return word_text(number - kBytes);
    return std::string(kSpecials[number - kBytes - words_]);
  }

  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, !skip_special);
    return text;
  }

  std::size_t vocab_size() const override { return size_; }
  bool is_special(TokenId id) const override {
    return id >= 0 && static_cast<std::size_t>(id) >= kBytes + words_ && static_cast<std::size_t>(id) < size_;
  }
  TokenId bos() const override { return kNoToken; }
  std::vector<TokenId> eos() const override { return {static_cast<TokenId>(size_ - 1)}; }
  bool strips_leading_space() const override { return false; }
  std::string name() const override { return fmt::format("built-in words ({} tokens)", size_); }
  std::string chat_template() const override { return std::string(kChatMl); }

 private:
  struct Found {
    std::size_t id, length;
  };

  Found longest(std::string_view text, bool parse_special) const {
    if (text.front() == ' ') return longest_word(text);
    if (text.front() == '<') {
      for (std::size_t i = 0; parse_special && i < kSpecials.size(); ++i)
        if (text.starts_with(kSpecials[i])) return {kBytes + words_ + i, kSpecials[i].size()};
      if (const auto escape = escaped_byte(text)) return *escape;
    }
    return {static_cast<unsigned char>(text.front()), 1};
  }

  static std::optional<Found> escaped_byte(std::string_view text) {
    if (text.size() < 4 || text[3] != '>') return std::nullopt;
    const int high = hex_digit(text[1]), low = hex_digit(text[2]);
    if (high < 0 || low < 0) return std::nullopt;
    const auto byte = static_cast<std::size_t>(high * 16 + low);
    if (byte_text(byte).size() != 4) return std::nullopt;
    return Found{byte, 4};
  }

  Found longest_word(std::string_view text) const {
    Found best{' ', 1};
    std::size_t first = 0;  // number of the first word of this length
    std::size_t number = 0, count = kSyllables;
    for (std::size_t syllables = 1; syllables <= kMostSyllables; ++syllables) {
      const auto syllable = syllable_at(text, 2 * syllables - 1);
      if (!syllable) break;
      number = number * kSyllables + *syllable;
      if (first + number < words_) best = {kBytes + first + number, 1 + 2 * syllables};
      first += count;
      count *= kSyllables;
    }
    return best;
  }

  static std::string word_text(std::size_t number) {
    std::size_t syllables = 1;
    for (std::size_t count = kSyllables; number >= count; ++syllables, count *= kSyllables) number -= count;
    std::string word(1 + 2 * syllables, ' ');
    for (std::size_t i = syllables; i > 0; --i, number /= kSyllables) {
      word[2 * i - 1] = kConsonants[number % kSyllables / kVowels.size()];
      word[2 * i] = kVowels[number % kVowels.size()];
    }
    return word;
  }

  std::size_t size_;
  std::size_t words_;
};

}  // namespace

TokenizerPtr builtin_tokenizer(std::size_t vocab_size) {
  TS_CHECK(vocab_size >= kBuiltinLeastVocabulary,
           "the built-in tokenizer needs room for the bytes, a word and the specials");
  return std::make_shared<const BuiltinTokenizer>(vocab_size);
}

}  // namespace tokenstone::token
