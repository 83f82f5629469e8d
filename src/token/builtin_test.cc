#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "token/tokenizer.h"

namespace tokenstone::token {
namespace {

using Ids = std::vector<TokenId>;

constexpr TokenId kFirstWord = 256;
constexpr std::size_t kSizes[] = {kBuiltinLeastVocabulary, 512, 32'000, 49'152, 151'936};

TEST(BuiltinTokenizer, EveryIdIsReadableAscii) {
  for (const std::size_t size : kSizes) {
    const auto tokenizer = builtin_tokenizer(size);
    ASSERT_EQ(tokenizer->vocab_size(), size);
    std::set<std::string> texts;
    for (TokenId id = 0; id < static_cast<TokenId>(size); ++id) {
      const std::string text = tokenizer->decode(Ids{id});
      ASSERT_FALSE(text.empty()) << id;
      for (const char c : text) ASSERT_TRUE((c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t' || c == '\r') << id;
      ASSERT_TRUE(texts.insert(text).second) << text;
      ASSERT_EQ(tokenizer->token_bytes(id, false), text);
    }
    EXPECT_EQ(tokenizer->token_bytes(static_cast<TokenId>(size), true), "");
    EXPECT_EQ(tokenizer->eos(), (Ids{static_cast<TokenId>(size) - 1}));
  }
}

TEST(BuiltinTokenizer, WordsComeBackAsTheSameTokens) {
  Rng rng(9, 0);
  for (const std::size_t size : kSizes) {
    const auto tokenizer = builtin_tokenizer(size);
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (int i = 0; i < 50; ++i)
        ids.push_back(static_cast<TokenId>(rng.uniform_int(kFirstWord, static_cast<std::int64_t>(size) - 4)));
      ASSERT_EQ(tokenizer->encode(tokenizer->decode(ids), {}), ids);
    }
  }
}

TEST(BuiltinTokenizer, SingleIdsComeBack) {
  const auto tokenizer = builtin_tokenizer(32'000);
  for (TokenId id = 0; id < 32'000; ++id)
    ASSERT_EQ(tokenizer->encode(tokenizer->decode(Ids{id}), {.parse_special = true}), (Ids{id}));
}

TEST(BuiltinTokenizer, AnyTextIsEncoded) {
  const auto tokenizer = builtin_tokenizer(32'000);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("The quick brown fox,\n 42 times!", {})),
            "The quick brown fox,\n 42 times!");
  EXPECT_EQ(tokenizer->encode("\xE6\xAD\xA3", {}), (Ids{0xE6, 0xAD, 0xA3}));
  EXPECT_EQ(tokenizer->decode(Ids{0xE6, 0xAD, 0xA3}), "<E6><AD><A3>");
  EXPECT_TRUE(tokenizer->encode("", {}).empty());
}

TEST(BuiltinTokenizer, SpecialsAreTheLastIds) {
  const auto tokenizer = builtin_tokenizer(32'000);
  EXPECT_EQ(tokenizer->encode("<|im_start|>a<|im_end|>", {.parse_special = true}), (Ids{31'998, 'a', 31'999}));
  EXPECT_EQ(tokenizer->encode("<|im_end|>", {}).size(), 10u);
  EXPECT_TRUE(tokenizer->is_special(31'997));
  EXPECT_FALSE(tokenizer->is_special(31'996));
  EXPECT_EQ(recognise_chat_template(tokenizer->chat_template()).value(), ChatFamily::chatml);
}

}  // namespace
}  // namespace tokenstone::token
