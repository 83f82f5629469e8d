// The test strings of llama.cpp's vocabularies: a text file of records and a file with one line of ids per record.
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "modelfile/model.h"
#include "support/check_report.h"
#include "support/shared_data.h"
#include "token/test_vocabularies.h"
#include "token/tokenizer.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

struct Vector {
  std::string text;
  std::vector<TokenId> ids;
};

/// Both files are split alike, so the text behind the last separator (empty, without ids) is a record too: 47 in all.
std::vector<Vector> read_vectors(const std::string& set) {
  const auto inputs = testing::shared_file("data/tokenizer_vectors/ggml-vocab-" + set + ".gguf.inp");
  const auto outputs = testing::shared_file("data/tokenizer_vectors/ggml-vocab-" + set + ".gguf.out");
  if (!inputs || !outputs) return {};
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  const std::string texts = testing::read_file(*inputs), ids = testing::read_file(*outputs);
  std::string_view rest = texts;
  std::vector<Vector> vectors;
  for (const std::string_view line : split(ids, '\n')) {
    const std::size_t end = rest.find(separator);
    Vector vector{std::string(rest.substr(0, end)), {}};
    std::istringstream numbers{std::string(line)};
    for (TokenId id; numbers >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + separator.size());
  }
  EXPECT_EQ(vectors.size(), 47u);
  EXPECT_TRUE(rest.empty());
  return vectors;
}

/// The vocabulary of a GGUF file as a SentencePiece model.
std::filesystem::path as_sentencepiece(const std::filesystem::path& gguf) {
  const auto model = modelfile::load_gguf(gguf).value();
  const auto& texts = std::get<std::vector<std::string>>(model->metadata.at("tokenizer.ggml.tokens"));
  const auto& scores = std::get<std::vector<double>>(model->metadata.at("tokenizer.ggml.scores"));
  const auto& kinds = std::get<std::vector<std::int64_t>>(model->metadata.at("tokenizer.ggml.token_type"));
  std::vector<testing::ScoredPiece> pieces;
  for (std::size_t i = 0; i < texts.size(); ++i)
    pieces.push_back({texts[i], static_cast<float>(scores[i]), static_cast<std::uint32_t>(kinds[i])});
  return testing::write_file(testing::temporary_folder() / "tokenizer.model", testing::sentencepiece_bytes(pieces));
}

/// Records of `set` that the tokenizer at `path` encodes as they stand in the file.
int matching(const std::string& set, const std::filesystem::path& path) {
  const auto tokenizer = load_tokenizer(path);
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return 0;
  }
  int count = 0;
  for (const Vector& vector : read_vectors(set)) {
    const auto ids = (*tokenizer)->encode(vector.text, {.add_special = false});
    EXPECT_EQ(ids, vector.ids) << set << ": " << ::testing::PrintToString(vector.text);
    count += ids == vector.ids ? 1 : 0;
  }
  return count;
}

TEST(TokenizerVectors, LlamaSpmAndQwen2) {
  const auto gguf = testing::shared_file("data/gguf/ggml-vocab-llama-spm.gguf");
  const auto json = testing::shared_file("data/tokenizers/TinyLlama_v1.1__tokenizer.json");
  const auto qwen = testing::shared_file("data/tokenizers/qwen3_tokenizer.json");
  testing::CheckReport check{.id = "spine.tokenizer_vectors", .unit = "vectors", .op = ">=", .target = 94};
  if (!gguf || !json || !qwen) {
    // The vocabularies lie beside the project and are no part of it; tokenizers_test.cc covers each format with small
    // ones.
    check.skipped = "data/tokenizers is not there";
    testing::report_check(check);
    GTEST_SKIP() << check.skipped;
  }
  // The SentencePiece vectors must come out of all three forms of the vocabulary; the least counts. The tokenizer.model
  // is made from the GGUF's vocabulary, which is the same one: the copy among the reference data has lost its carriage
  // returns.
  const int spm = std::min(
      {matching("llama-spm", *gguf), matching("llama-spm", *json), matching("llama-spm", as_sentencepiece(*gguf))});
  check.value = spm + matching("qwen2", *qwen);
  check.n = 94;
  check.pass = check.value >= check.target;
  testing::report_check(check);
  EXPECT_EQ(check.value, 94);
}

TEST(TokenizerVectors, Gpt2AndDeepSeekCoderFromGguf) {
  for (const std::string set : {"gpt-2", "deepseek-coder"}) {
    const auto gguf = testing::shared_file("data/gguf/ggml-vocab-" + set + ".gguf");
    // The vocabularies lie beside the project and are no part of it.
    if (!gguf) GTEST_SKIP() << "data/gguf is not there";
    EXPECT_EQ(matching(set, *gguf), 47) << set;
  }
}

TEST(TokenizerVectors, RealTextComesBack) {
  const auto qwen = testing::shared_file("data/tokenizers/qwen3_tokenizer.json");
  const auto llama = testing::shared_file("data/tokenizers/TinyLlama_v1.1__tokenizer.json");
  const auto text = testing::shared_file("data/prompts/sonnet.txt");
  // The files lie beside the project and are no part of it.
  if (!qwen || !llama || !text) GTEST_SKIP() << "data/tokenizers is not there";
  const std::string sonnets = testing::read_file(*text);
  for (const auto& path : {*qwen, *llama}) {
    const auto tokenizer = load_tokenizer(path);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(sonnets, {.add_special = false})), sonnets) << path;
  }
}

// 0x0D became 0x0A in this copy, so that lengths in it are wrong.
TEST(TokenizerVectors, DamagedSentencePieceModelIsRefused) {
  const auto path = testing::shared_file("data/tokenizers/TinyLlama_v1.1__tokenizer.model");
  // The file lies beside the project and is no part of it; tokenizers_test.cc damages small models.
  if (!path) GTEST_SKIP() << "data/tokenizers is not there";
  const auto tokenizer = load_tokenizer(*path);
  ASSERT_FALSE(tokenizer);
  EXPECT_NE(tokenizer.error().message.find("fetch it again"), std::string::npos);
}

TEST(TokenizerVectors, Stories260KHasItsOwnTokenizer) {
  const auto path = testing::shared_file("data/models/stories260K.gguf");
  // The file lies beside the project and is no part of it.
  if (!path) GTEST_SKIP() << "data/models/stories260K.gguf is not there";
  const auto tokenizer = load_tokenizer(*path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->vocab_size(), 512u);
  EXPECT_EQ((*tokenizer)->eos(), (std::vector<TokenId>{2}));
  const std::string start = "Once upon a time, there was a little girl named Lily.";
  const auto ids = (*tokenizer)->encode(start, {});
  EXPECT_EQ(std::vector<TokenId>(ids.begin(), ids.begin() + 7),
            (std::vector<TokenId>{1, 403, 407, 261, 378, 432, 383}));
  EXPECT_EQ((*tokenizer)->decode(ids), start);
}

}  // namespace
}  // namespace tokenstone::token
