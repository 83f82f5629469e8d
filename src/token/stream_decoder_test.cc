#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "token/tokenizer.h"

namespace tokenstone::token {
namespace {

/// A vocabulary of whatever bytes a test wants.
class FixedTokenizer final : public Tokenizer {
 public:
  explicit FixedTokenizer(std::vector<std::string> pieces, bool strips = false)
      : pieces_(std::move(pieces)), strips_(strips) {}
  std::vector<TokenId> encode(std::string_view, const EncodeOptions&) const override { return {}; }
  std::string token_bytes(TokenId id, bool) const override { return pieces_[static_cast<std::size_t>(id)]; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string bytes;
    for (const TokenId id : ids) bytes += token_bytes(id, false);
    if (strips_ && bytes.starts_with(' ')) bytes.erase(0, 1);
    return to_valid_utf8(bytes);
  }
  std::size_t vocab_size() const override { return pieces_.size(); }
  bool is_special(TokenId) const override { return false; }
  TokenId bos() const override { return kNoToken; }
  std::vector<TokenId> eos() const override { return {}; }
  bool strips_leading_space() const override { return strips_; }
  std::string name() const override { return "fixed"; }
  std::string chat_template() const override { return {}; }

 private:
  std::vector<std::string> pieces_;
  bool strips_;
};

struct Streamed {
  std::vector<std::string> pieces;
  std::string rest;
  bool stopped = false;
  std::string reason;
  std::string text() const { return join(pieces, "") + rest; }
};

Streamed stream(std::vector<std::string> tokens, std::vector<std::string> stop = {}, bool include_stop = false) {
  const auto count = static_cast<TokenId>(tokens.size());
  StreamDecoder decoder(std::make_shared<FixedTokenizer>(std::move(tokens)), std::move(stop), include_stop, true);
  Streamed out;
  for (TokenId id = 0; id < count && !out.stopped; ++id) {
    auto piece = decoder.push(id);
    out.pieces.push_back(piece.text);
    out.stopped = piece.stopped;
    out.reason = piece.stop_reason;
  }
  out.rest = decoder.finish();
  return out;
}

using Pieces = std::vector<std::string>;
const std::string kReplacement = "\xEF\xBF\xBD";

// SRV-09: an unfinished character followed by something else.
TEST(StreamDecoder, IllFormedBytesBecomeReplacementCharacters) {
  const Streamed out = stream({"\xE6\xAD", "\x27"});
  EXPECT_EQ(out.pieces, (Pieces{"", kReplacement + "'"}));
  EXPECT_EQ(stream({"a", "\xE6\xAD"}).text(), "a" + kReplacement);
  EXPECT_EQ(stream({"\xFF", "b"}).text(), kReplacement + "b");
}

// SRV-11
TEST(StreamDecoder, HoldsCharactersBackUntilWhole) {
  EXPECT_EQ(stream({"\xF0", "\x9F", "\x98", "\x80", "!"}).pieces, (Pieces{"", "", "", "\xF0\x9F\x98\x80", "!"}));
}

// SRV-03
TEST(StreamDecoder, StopStringsSpanTokens) {
  const Streamed out = stream({"ab", "UVW", "X", "YZ", "1", "more"}, {"UVWXYZ1"});
  EXPECT_EQ(out.pieces, (Pieces{"ab", "", "", "", ""}));
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(out.reason, "UVWXYZ1");
  EXPECT_EQ(out.text(), "ab");
  const Streamed middle = stream({"say END", "ING now"}, {"ENDING"});
  EXPECT_EQ(middle.text(), "say ");
  EXPECT_EQ(stream({"say END", "ING now"}, {"ENDING"}, true).text(), "say ENDING");
}

// SRV-01: what was held back comes out when no stop string follows.
TEST(StreamDecoder, HeldBackTextIsNotLost) {
  const Streamed newline = stream({"why", "?", "\n"}, {"\n"});
  EXPECT_EQ(newline.text(), "why?");
  EXPECT_TRUE(newline.stopped);
  const Streamed end = stream({"abc", "EN"}, {"END"});
  EXPECT_EQ(end.pieces, (Pieces{"abc", ""}));
  EXPECT_EQ(end.rest, "EN");
  EXPECT_EQ(stream({"EN", "EN", "x"}, {"END"}).pieces, (Pieces{"", "EN", "ENx"}));
}

TEST(StreamDecoder, TheStopStringThatEndsFirstCounts) {
  EXPECT_EQ(stream({"xaby"}, {"aby", "ab"}).reason, "ab");
  EXPECT_EQ(stream({"xab"}, {"b", "ab"}).text(), "x");
  EXPECT_EQ(stream({"x", "a", "b"}, {"b", "ab"}).text(), "x");
  EXPECT_FALSE(stream({"text"}, {""}).stopped);
}

TEST(StreamDecoder, NothingFollowsAStop) {
  StreamDecoder decoder(std::make_shared<FixedTokenizer>(Pieces{"a", "b"}), {"a"}, false, true);
  EXPECT_TRUE(decoder.push(0).stopped);
  EXPECT_EQ(decoder.push(1).text, "");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, TheFirstBlankBelongsToAContinuedText) {
  const auto tokenizer = std::make_shared<FixedTokenizer>(Pieces{"", " Once", " upon"}, true);
  StreamDecoder continued(tokenizer, {}, false, true), fresh(tokenizer, {}, false, true, false);
  std::string first, second;
  for (TokenId id = 0; id < 3; ++id) {
    first += continued.push(id).text;
    second += fresh.push(id).text;
  }
  EXPECT_EQ(first, " Once upon");
  EXPECT_EQ(second, "Once upon");
}

/// The stop string that ends first, found in the whole text.
std::string cut_at_stop(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t best_end = std::string::npos, best_begin = std::string::npos;
  for (const std::string& stop : stops) {
    const std::size_t begin = text.find(stop);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) best_end = end, best_begin = begin;
  }
  return text.substr(0, best_begin);
}

TEST(StreamDecoder, RandomCutsGiveTheWholeText) {
  Rng rng(8, 0);
  const std::string alphabet[] = {"a", "b", "ab", "\xC3\xA9", "\xE6\xAD\xA3", "\xF0\x9F\x98\x80", "\xE6", "\xFF", " "};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (int i = 0; i < 20; ++i) bytes += alphabet[rng.next_u32() % std::size(alphabet)];
    std::vector<std::string> tokens;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = 1 + rng.next_u32() % 5;
      tokens.push_back(bytes.substr(at, length));
      at += length;
    }
    EXPECT_EQ(stream(tokens).text(), to_valid_utf8(bytes));
    const std::vector<std::string> stops = {"aba", "bab\xC3\xA9",
                                            "\xE6\xAD\xA3"
                                            "a"};
    EXPECT_EQ(stream(tokens, stops).text(), cut_at_stop(to_valid_utf8(bytes), stops));
  }
}

}  // namespace
}  // namespace tokenstone::token
