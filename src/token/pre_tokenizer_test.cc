#include "token/pre_tokenizer.h"

#include <gtest/gtest.h>

namespace tokenstone::token {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces cut(std::string_view text, const std::vector<PreTokenizer::Step>& steps) {
  const auto made = PreTokenizer::compile(steps);
  EXPECT_TRUE(made) << made.error().message;
  Pieces pieces;
  made->split(text, pieces);
  return pieces;
}

TEST(PreTokenizer, CutsAsGpt2) {
  EXPECT_EQ(cut("Hello world, it's 2023!!  x", {{kGpt2Pattern}}),
            (Pieces{"Hello", " world", ",", " it", "'s", " 2023", "!!", " ", " x"}));
  EXPECT_EQ(cut("a\n\n b", {{kGpt2Pattern}}), (Pieces{"a", "\n\n", " b"}));
  EXPECT_TRUE(cut("", {{kGpt2Pattern}}).empty());
}

TEST(PreTokenizer, EachStepCutsThePiecesBefore) {
  EXPECT_EQ(cut("ab12cd", {{"[0-9]"}, {"[a-z]"}}), (Pieces{"a", "b", "1", "2", "c", "d"}));
  EXPECT_EQ(cut("ab12cd", {}), (Pieces{"ab12cd"}));
  EXPECT_EQ(cut("ab 12", {{"[a-z0-9]+", PreTokenizer::Keep::matches}}), (Pieces{"ab", "12"}));
  EXPECT_EQ(cut("a.b", {{escape_pattern(".")}}), (Pieces{"a", ".", "b"}));
}

// BPE-05: blanks are Unicode's White_Space, so U+2029 is one and U+180E is not.
TEST(PreTokenizer, KnowsRareBlanks) {
  EXPECT_EQ(cut("a\xE2\x80\xA9"
                "b",
                {{R"(\s)"}}),
            (Pieces{"a", "\xE2\x80\xA9", "b"}));
  EXPECT_EQ(cut("a\xC2\x85"
                "b",
                {{R"([\s])"}}),
            (Pieces{"a", "\xC2\x85", "b"}));
  EXPECT_EQ(cut("a\xE1\xA0\x8E"
                "b",
                {{R"(\s)"}}),
            (Pieces{"a\xE1\xA0\x8E"
                    "b"}));
  EXPECT_EQ(cut("a\xE1\xA0\x8E b", {{R"([\S]+)"}}), (Pieces{"a\xE1\xA0\x8E", " ", "b"}));
}

TEST(PreTokenizer, EmptyMatchesCutNothing) { EXPECT_EQ(cut("a\xC3\xA9", {{"x*"}}), (Pieces{"a\xC3\xA9"})); }

// Nested repetition would take exponential time; the limit ends it and the rest is one piece.
TEST(PreTokenizer, HopelessPatternsEnd) {
  std::string text(60, 'a');
  text.push_back('!');
  EXPECT_EQ(cut(text, {{"(a+)+$"}}).size(), 1u);
}

TEST(PreTokenizer, LongRunsOfBlanksAreCut) {
  std::string text(300'000, ' ');
  text.push_back('x');
  const Pieces pieces = cut(text, {{kGpt2Pattern}});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1], " x");
}

}  // namespace
}  // namespace tokenstone::token
