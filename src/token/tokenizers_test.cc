// Each file format with small vocabularies: right ids, refusals, and damaged files.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/rng.h"
#include "support/shared_data.h"
#include "token/merger.h"
#include "token/test_vocabularies.h"
#include "token/tokenizer.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

using testing::ByteLevelJson;
using testing::write_file;
using Ids = std::vector<TokenId>;

constexpr EncodeOptions kPlain{.add_special = false};

std::filesystem::path folder() {
  static const std::filesystem::path made = testing::temporary_folder();
  return made;
}

Result<TokenizerPtr> load_bytes(std::string_view bytes, const std::string& name) {
  return load_tokenizer(write_file(folder() / name, bytes));
}

TokenizerPtr json_tokenizer(const ByteLevelJson& json) {
  auto tokenizer = load_bytes(json.bytes(), "tokenizer.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer.value();
}

std::string json_error(std::string_view bytes) {
  const auto tokenizer = load_bytes(bytes, "tokenizer.json");
  return tokenizer ? "no error" : tokenizer.error().message;
}

std::string random_text(Rng& rng, int characters) {
  std::string text;
  for (int i = 0; i < characters; ++i) {
    const std::uint32_t plane = rng.next_u32() % 4;
    std::uint32_t c = plane == 0   ? 0x20 + rng.next_u32() % 0x5F
                      : plane == 1 ? rng.next_u32() % 0x800
                      : plane == 2 ? rng.next_u32() % 0x10000
                                   : rng.next_u32() % 0x110000;
    if (c >= 0xD800 && c < 0xE000) c = 0x20;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
  }
  return text;
}

TEST(ByteLevelBpe, MergesByRankWithinWords) {
  const auto tokenizer = json_tokenizer({});
  // 256 lo, 257 low, 258 " low", 259 er
  EXPECT_EQ(tokenizer->encode("low lower", kPlain), (Ids{257, 258, 259}));
  EXPECT_EQ(tokenizer->encode("", kPlain), Ids{});
  EXPECT_EQ(tokenizer->decode(Ids{257, 258, 259, 260}), "low lower");
  EXPECT_EQ(tokenizer->vocab_size(), 261u);
}

TEST(ByteLevelBpe, MergesAsListsAreTheSame) {
  const auto texts = json_tokenizer({}), lists = json_tokenizer({.merges_as_lists = true});
  EXPECT_EQ(texts->encode("slower glow", kPlain), lists->encode("slower glow", kPlain));
}

TEST(ByteLevelBpe, AnyTextComesBack) {
  const auto tokenizer = json_tokenizer({});
  Rng rng(3, 0);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(rng, 1 + round % 60);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain)), text);
  }
}

TEST(ByteLevelBpe, IllFormedTextIsRepaired) {
  const auto tokenizer = json_tokenizer({});
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFFz\xE6\xAD", kPlain)), "a\xEF\xBF\xBDz\xEF\xBF\xBD");
}

// BPE-01: with ignore_merges a word that is a token is taken whole, though no merges lead to it.
TEST(ByteLevelBpe, TakesWholeWordsIfMergesAreIgnored) {
  const std::string word = " Vi\xE1\xBB\x87t";
  EXPECT_EQ(json_tokenizer({.words = {word}})->encode(word, kPlain).size(), 7u);
  EXPECT_EQ(json_tokenizer({.words = {word}, .model_options = R"("ignore_merges":true,)"})->encode(word, kPlain),
            (Ids{260}));
}

// BPE-02: the cut is the file's own; here digits stand in threes and nothing merges over their borders.
TEST(ByteLevelBpe, CutsAsTheFileSays) {
  const testing::MergeList merges = {{"1", "2"}, {"12", "3"}, {"123", "4"}};
  const std::string threes =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated"},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  EXPECT_EQ(json_tokenizer({.merges = merges})->encode("1234", kPlain), (Ids{258}));
  EXPECT_EQ(json_tokenizer({.merges = merges, .pre_tokenizer = threes})->encode("1234", kPlain), (Ids{257, '4'}));
  const std::string digits =
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false}]})";
  EXPECT_EQ(json_tokenizer({.merges = merges, .pre_tokenizer = digits})->encode("1234", kPlain),
            (Ids{'1', '2', '3', '4'}));
}

TEST(ByteLevelBpe, PutsABlankBeforeTheTextIfTold) {
  const std::string pre = R"({"type":"ByteLevel","add_prefix_space":true})";
  EXPECT_EQ(json_tokenizer({.pre_tokenizer = pre})->encode("low", kPlain), (Ids{258}));
  EXPECT_EQ(json_tokenizer({.pre_tokenizer = pre})->encode(" low", kPlain), (Ids{258}));
}

TEST(ByteLevelBpe, ComposesCharactersIfTold) {
  const std::string decomposed = "e\xCC\x81", composed = "\xC3\xA9";
  EXPECT_EQ(json_tokenizer({})->encode(decomposed, kPlain).size(), 3u);
  EXPECT_EQ(json_tokenizer({.normalizer = R"({"type":"NFC"})"})->encode(decomposed, kPlain), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(json_tokenizer({.normalizer = R"({"type":"NFC"})"})->encode(composed, kPlain), (Ids{0xC3, 0xA9}));
}

TEST(ByteLevelBpe, SpecialTokensAreFoundOnlyWhenAsked) {
  const auto tokenizer = json_tokenizer({});
  EXPECT_EQ(tokenizer->encode("low<|end|>low", {.add_special = false, .parse_special = true}), (Ids{257, 260, 257}));
  EXPECT_GT(tokenizer->encode("low<|end|>low", kPlain).size(), 3u);
  EXPECT_EQ(tokenizer->decode(Ids{257, 260}), "low");
  EXPECT_EQ(tokenizer->decode(Ids{257, 260}, false), "low<|end|>");
  EXPECT_TRUE(tokenizer->is_special(260));
  EXPECT_EQ(tokenizer->token_bytes(-1, true), "");
  EXPECT_EQ(tokenizer->token_bytes(5000, true), "");
}

TEST(ByteLevelBpe, TheTemplatePutsTokensAround) {
  const auto tokenizer = json_tokenizer(
      {.post_processor =
           R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|end|>"}},{"Sequence":{"id":"A"}}],)"
           R"("special_tokens":{"<|end|>":{"id":"<|end|>","ids":[260]}}})"});
  EXPECT_EQ(tokenizer->encode("low", {}), (Ids{260, 257}));
  EXPECT_EQ(tokenizer->encode("low", kPlain), (Ids{257}));
  EXPECT_EQ(tokenizer->bos(), 260);
}

TEST(ByteLevelBpe, TokenizerConfigNamesEndAndTemplate) {
  const auto home = testing::temporary_folder();
  write_file(home / "tokenizer.json", ByteLevelJson{}.bytes());
  write_file(home / "tokenizer_config.json",
             R"({"eos_token":{"content":"<|end|>"},"chat_template":"{{ '<|im_start|>' }}"})");
  const auto tokenizer = load_tokenizer(home);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->eos(), (Ids{260}));
  EXPECT_EQ((*tokenizer)->chat_template(), "{{ '<|im_start|>' }}");
}

TEST(ByteLevelBpe, ThreadsDoNotDisturbEachOther) {
  const auto one = json_tokenizer({}), other = json_tokenizer({.merges = {{"o", "w"}, {"l", "ow"}}});
  const Ids of_one = one->encode("low lower glow", kPlain), of_other = other->encode("low lower glow", kPlain);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        wrong +=
            (one->encode("low lower glow", kPlain) != of_one) + (other->encode("low lower glow", kPlain) != of_other);
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(of_one, of_other);
}

TEST(TokenizerJson, RefusesByName) {
  EXPECT_NE(json_error("<html>").find("a web page"), std::string::npos);
  EXPECT_NE(json_error(R"({"chat_template":""})").find("tokenizer_config.json alone is not enough"), std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"WordPiece","vocab":{"a":0}}})").find("\"WordPiece\""), std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{}}})").find("no vocabulary"), std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{"a":0}}})").find("no merges"), std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})").find("no merges"), std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})").find("does not join"),
            std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})").find("two tokens"),
            std::string::npos);
  EXPECT_NE(json_error(R"({"model":{"type":"BPE","vocab":{"a":2000000000},"merges":[]}})").find("no usable number"),
            std::string::npos);
  EXPECT_NE(
      json_error(R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})").find("two tokens have the number"),
      std::string::npos);
  EXPECT_NE(json_error(ByteLevelJson{.normalizer = R"({"type":"Precompiled"})"}.bytes()).find("\"Precompiled\""),
            std::string::npos);
  EXPECT_NE(
      json_error(ByteLevelJson{.pre_tokenizer = R"({"type":"BertPreTokenizer"})"}.bytes()).find("\"BertPreTokenizer\""),
      std::string::npos);
  EXPECT_NE(
      json_error(ByteLevelJson{.post_processor = R"({"type":"BertProcessing"})"}.bytes()).find("\"BertProcessing\""),
      std::string::npos);
  EXPECT_NE(
      json_error(
          ByteLevelJson{.pre_tokenizer = R"({"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"}.bytes())
          .find("does not compile"),
      std::string::npos);
  EXPECT_NE(load_tokenizer(folder() / "absent").error().message.find("no such file"), std::string::npos);
  EXPECT_NE(load_tokenizer(testing::temporary_folder()).error().message.find("found none"), std::string::npos);
}

TEST(TokenizerJson, DamagedFilesNeverCrash) {
  const std::string bytes = ByteLevelJson{}.bytes();
  for (std::size_t length = 0; length < bytes.size(); length += 13)
    EXPECT_NE(json_error(bytes.substr(0, length)), "no error") << length;
  Rng rng(4, 0);
  for (int round = 0; round < 400; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 2; ++flips)
      damaged[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(bytes.size()) - 1))] =
          static_cast<char>(rng.uniform_int(0, 255));
    if (const auto tokenizer = load_bytes(damaged, "tokenizer.json"))
      (void)(*tokenizer)->encode("low lower <|end|>", {});
  }
}

/// "\u2581" for the blank mark, so that the vocabulary below can be read.
std::string marked(std::string text) { return replace_all(text, "_", kBlankMark); }

std::vector<testing::ScoredPiece> small_pieces() {
  std::vector<std::string> words;
  for (const char* word : {"_l", "ow", "_low", "er", "_", "l", "o", "w", "e", "r", "\xC3\xA9", "__"})
    words.push_back(marked(word));
  return testing::scored_pieces(words);
}

std::string sentencepiece_json() {
  std::string vocabulary;
  const auto pieces = small_pieces();
  for (std::size_t id = 0; id < pieces.size(); ++id)
    vocabulary += (id > 0 ? "," : "") + testing::json_text(pieces[id].text) + ":" + std::to_string(id);
  const std::string merges = marked(R"("_ l","o w","_l ow","e r","_ _")");
  return R"({"added_tokens":[{"id":0,"content":"<unk>","special":true},{"id":1,"content":"<s>","special":true},{"id":2,"content":"</s>","special":true}],)"
         R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":")" +
         marked("_") + R"("},{"type":"Replace","pattern":{"String":" "},"content":")" + marked("_") +
         R"("}]},"pre_tokenizer":null,)"
         R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],)"
         R"("special_tokens":{"<s>":{"id":"<s>","ids":[1]}}},"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},)"
         R"({"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,)"
         R"("vocab":{)" +
         vocabulary + R"(},"merges":[)" + merges + "]}}";
}

TEST(SentencePieceBpe, ThreeFormatsGiveTheSameTokens) {
  const auto model = load_bytes(testing::sentencepiece_bytes(small_pieces()), "tokenizer.model");
  const auto gguf = load_bytes(testing::sentencepiece_gguf(small_pieces()).bytes(), "tokenizer.gguf");
  const auto json = load_bytes(sentencepiece_json(), "spm.json");
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(gguf) << gguf.error().message;
  ASSERT_TRUE(json) << json.error().message;
  // 261 _low, 262 er; é has a piece; the byte pieces begin at 3.
  EXPECT_EQ((*model)->encode("low lower \xC3\xA9\xE6\xAD\xA3", {}),
            (Ids{1, 261, 261, 262, 263, 269, 3 + 0xE6, 3 + 0xAD, 3 + 0xA3}));
  Rng rng(5, 0);
  for (int round = 0; round < 300; ++round) {
    std::string text = random_text(rng, round % 20);
    for (int i = 0; i < 30; ++i) text += "low er  "[rng.next_u32() % 8];
    const Ids ids = (*model)->encode(text, {});
    EXPECT_EQ(ids, (*gguf)->encode(text, {}));
    EXPECT_EQ(ids, (*json)->encode(text, {}));
    EXPECT_EQ((*model)->decode(ids), text);
    EXPECT_EQ((*json)->decode(ids), text);
  }
}

TEST(SentencePieceBpe, RemovesTheFirstBlankOnly) {
  const auto tokenizer = load_bytes(testing::sentencepiece_bytes(small_pieces()), "tokenizer.model").value();
  EXPECT_TRUE(tokenizer->strips_leading_space());
  EXPECT_EQ(tokenizer->decode(Ids{1, 261, 261}), "low low");
  EXPECT_EQ(tokenizer->token_bytes(261, false), " low");
  EXPECT_EQ(tokenizer->token_bytes(3 + 0xE6, false), "\xE6");
  EXPECT_EQ(tokenizer->token_bytes(1, false), "");
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), (Ids{2}));
}

// A pair can only be merged over a character that is no piece itself, as SentencePiece looks pairs up by their text.
TEST(SentencePieceBpe, MergesOverCharactersThatAreNoPieces) {
  const auto tokenizer =
      load_bytes(testing::sentencepiece_bytes(testing::scored_pieces({marked("_"), "qq"})), "tokenizer.model").value();
  EXPECT_EQ(tokenizer->encode("qqq", kPlain), (Ids{259, 260, 3 + 'q'}));
}

TEST(SentencePieceBpe, RefusesOtherModels) {
  EXPECT_NE(
      load_bytes(testing::sentencepiece_bytes(small_pieces(), 1), "tokenizer.model").error().message.find("unigram"),
      std::string::npos);
  EXPECT_NE(load_bytes(testing::sentencepiece_bytes(small_pieces(), 2, true), "tokenizer.model")
                .error()
                .message.find("extra blanks"),
            std::string::npos);
  EXPECT_NE(load_bytes("hello, this is text", "tokenizer.model").error().message.find("\"hello, t\""),
            std::string::npos);
  EXPECT_NE(load_bytes("", "tokenizer.model").error().message.find("the file is empty"), std::string::npos);
}

TEST(SentencePieceBpe, DamagedFilesNeverCrash) {
  const std::string bytes = testing::sentencepiece_bytes(small_pieces());
  Rng rng(6, 0);
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = bytes.substr(
        0, round % 2 == 0 ? bytes.size() : static_cast<std::size_t>(rng.uniform_int(0, 5000)) % bytes.size());
    for (int flips = 0; flips < 2 && !damaged.empty(); ++flips)
      damaged[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(damaged.size()) - 1))] =
          static_cast<char>(rng.uniform_int(0, 255));
    if (const auto tokenizer = load_bytes(damaged, "tokenizer.model"))
      (void)(*tokenizer)->encode("low lower <s> \xC3\xA9", {});
  }
}

std::string gguf_error(const testing::GgufWriter& writer) {
  const auto tokenizer = load_bytes(writer.bytes(), "tokenizer.gguf");
  return tokenizer ? "no error" : tokenizer.error().message;
}

testing::GgufWriter gguf_with(const std::string& model) {
  testing::GgufWriter writer;
  writer.pair_text("general.architecture", "llama").pair_text("tokenizer.ggml.model", model);
  return writer.pair_texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
}

TEST(GgufTokenizer, RefusesByName) {
  testing::GgufWriter none;
  none.pair_text("general.architecture", "llama");
  EXPECT_NE(gguf_error(none).find("no tokenizer"), std::string::npos);
  EXPECT_NE(gguf_error(gguf_with("bert")).find("found \"bert\""), std::string::npos);
  EXPECT_NE(gguf_error(gguf_with("gpt2")).find("has no merges"), std::string::npos);
  EXPECT_NE(gguf_error(gguf_with("gpt2").pair_texts("tokenizer.ggml.merges", {"a c"})).find("does not join"),
            std::string::npos);
  EXPECT_NE(
      gguf_error(
          gguf_with("gpt2").pair_texts("tokenizer.ggml.merges", {"a b"}).pair_text("tokenizer.ggml.pre", "marsian"))
          .find("\"marsian\""),
      std::string::npos);
  EXPECT_EQ(gguf_error(gguf_with("gpt2").pair_texts("tokenizer.ggml.merges", {"a b"})), "no error");
  EXPECT_NE(gguf_error(gguf_with("llama")).find("scores"), std::string::npos);
  EXPECT_NE(gguf_error(gguf_with("llama").pair_numbers<float>("tokenizer.ggml.scores", 6, {1, 2})).find("scores"),
            std::string::npos);
  EXPECT_NE(gguf_error(gguf_with("llama").pair_numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 9}))
                .find("unknown type 9"),
            std::string::npos);
}

// LDR-03: the right number of scores, in a narrower type.
TEST(GgufTokenizer, ChecksTheTypeOfScores) {
  EXPECT_NE(gguf_error(gguf_with("llama").pair_numbers<std::uint8_t>("tokenizer.ggml.scores", 0, {1, 2, 3}))
                .find("floating-point"),
            std::string::npos);
}

TEST(Merger, ScanAndHeapAgree) {
  Rng rng(7, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<Merge> merges;
    for (Symbol result = 4; result < 40; ++result)  // ranks tie now and then
      merges.push_back({static_cast<Symbol>(rng.uniform_int(0, result - 1)),
                        static_cast<Symbol>(rng.uniform_int(0, result - 1)), result,
                        static_cast<std::uint32_t>(rng.uniform_int(0, 25))});
    const Merger merger(merges);
    std::vector<Symbol> one;
    for (int i = 0; i < 120; ++i) one.push_back(static_cast<Symbol>(rng.uniform_int(0, 3)));
    std::vector<Symbol> other = one;
    merger.merge_by_scan(one);
    merger.merge_by_heap(other);
    EXPECT_EQ(one, other);
  }
}

}  // namespace
}  // namespace tokenstone::token
