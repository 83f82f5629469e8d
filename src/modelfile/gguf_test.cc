#include <gtest/gtest.h>

#include "base/rng.h"
#include "modelfile/model.h"
#include "modelfile/summary.h"
#include "modelfile/test_files.h"
#include "support/shared_data.h"

namespace tokenstone::modelfile {
namespace {

using testing::GgufWriter;
using testing::raw;

std::filesystem::path folder() {
  static const std::filesystem::path made = testing::temporary_folder();
  return made;
}

Result<std::shared_ptr<const ModelFile>> load_bytes(std::string_view bytes) {
  return load_gguf(testing::write_file(folder() / "model.gguf", bytes));
}

std::string error_of(std::string_view bytes) {
  const auto model = load_bytes(bytes);
  return model ? "no error" : model.error().message;
}

GgufWriter with_architecture() {
  GgufWriter writer;
  writer.pair_text("general.architecture", "llama");
  return writer;
}

TEST(Gguf, ReadsConfigurationFromIntegersOfAnyWidth) {
  const auto model = load_bytes(testing::tiny_llama_gguf().bytes());
  ASSERT_TRUE(model) << model.error().message;
  const ModelConfig& config = (*model)->config;
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 1u);
  EXPECT_EQ(config.hidden_size, 8u);
  EXPECT_EQ(config.intermediate_size, 16u);
  EXPECT_EQ(config.num_heads, 2u);
  EXPECT_EQ(config.num_kv_heads, 1u);
  EXPECT_EQ(config.head_dim, 4u);
  EXPECT_EQ(config.vocab_size, 12u);
  EXPECT_FLOAT_EQ(static_cast<float>(config.rope_theta), 500000.0f);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.rope_scaling.empty());
}

TEST(Gguf, NamesTensorsAsHuggingFaceAndReversesShapes) {
  const auto model = load_bytes(testing::tiny_llama_gguf().bytes());
  ASSERT_TRUE(model) << model.error().message;
  const TensorView* k = (*model)->find("model.layers.0.self_attn.k_proj.weight");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->shape, (std::vector<std::uint64_t>{4, 8}));
  EXPECT_EQ(k->file_name, "blk.0.attn_k.weight");
  EXPECT_EQ(k->dtype, DType::f32);
  const TensorView* embedding = (*model)->find("model.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  float first = 0;
  std::memcpy(&first, embedding->data.data(), sizeof first);
  EXPECT_EQ(first, 0.25f);
  EXPECT_TRUE((*model)->unknown_tensors.empty());
}

// LDR-07: what the architecture does not have is listed, not refused.
TEST(Gguf, ListsUnknownTensors) {
  GgufWriter writer = testing::tiny_llama_gguf();
  writer.tensor("blk.0.nextn.eh_proj.weight", {8}).tensor("blk.1.attn_q.weight", {8, 8});
  const auto model = load_bytes(writer.bytes());
  ASSERT_TRUE(model) << model.error().message;
  std::vector<std::string> unknown = (*model)->unknown_tensors;
  std::ranges::sort(unknown);
  EXPECT_EQ(unknown, (std::vector<std::string>{"blk.0.nextn.eh_proj.weight", "blk.1.attn_q.weight"}));
}

TEST(Gguf, NamesOtherElementTypes) {
  const std::string bytes =
      with_architecture().tensor_info("output.weight", {32}, 8, 0).data(std::string(34, 'x')).bytes();
  const auto model = load_bytes(bytes);
  ASSERT_TRUE(model) << model.error().message;
  const TensorView* tensor = (*model)->find("lm_head.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype, DType::other);
  EXPECT_EQ(tensor->dtype_name, "Q8_0");
  EXPECT_EQ(tensor->data.size(), 34u);
}

TEST(Gguf, IsSummarised) {
  GgufWriter writer = testing::tiny_llama_gguf();
  const auto model = load_bytes(writer.bytes());
  ASSERT_TRUE(model) << model.error().message;
  const ModelSummary summary = summarize(**model);
  // Embedding 96, three norms of 8, q and o 64 each, k and v 32 each, three of 128.
  EXPECT_EQ(summary.total.parameters, 96u + 24 + 128 + 64 + 384);
  EXPECT_EQ(summary.total.bytes, 4 * summary.total.parameters);
  EXPECT_EQ(summary.by_dtype.at("F32").tensors, 11u);
  EXPECT_EQ(summary.kv_elements_per_token, 2u * 1 * 1 * 4);
}

TEST(Gguf, SaysWhatWasFoundInsteadOfGguf) {
  EXPECT_NE(error_of("<!DOCTYPE html>").find("a web page"), std::string::npos);
  EXPECT_NE(error_of("version https://git-lfs.github.com/spec/v1\n").find("git lfs pull"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x80\x03\x8a\x0a", 4)).find("80 03 8A 0A"), std::string::npos);
  EXPECT_NE(error_of("").find("the file is empty"), std::string::npos);
}

TEST(Gguf, RefusesOtherVersions) {
  std::string bytes = testing::tiny_llama_gguf().bytes();
  bytes[4] = 1;
  EXPECT_NE(error_of(bytes).find("expected GGUF version 3, found 1"), std::string::npos);
  bytes.replace(4, 4, raw<std::uint32_t>(0x03000000));
  EXPECT_NE(error_of(bytes).find("big-endian"), std::string::npos);
}

// LDR-01: products and sums that pass 2^64.
TEST(Gguf, RefusesSizesThatWrap) {
  const auto shape =
      with_architecture().tensor_info("big", {(1ull << 42) + 1, 1ull << 22}, 0, 0).data(std::string(64, 'x'));
  EXPECT_NE(error_of(shape.bytes()).find("\"big\""), std::string::npos);
  GgufWriter sum = with_architecture();
  sum.tensor_info("a", {1ull << 61}, 24, 0).tensor_info("b", {1ull << 63}, 24, 1ull << 63).data(std::string(64, 'x'));
  EXPECT_NE(error_of(sum.bytes()).find("data section has"), std::string::npos);
}

// LDR-08 and its like: counts and lengths far above the file's size are refused before anything is allocated.
TEST(Gguf, RefusesAbsurdCounts) {
  const std::uint64_t absurd = ~0ull;
  std::string tensors = with_architecture().bytes();
  tensors.replace(8, 8, raw(absurd));
  EXPECT_NE(error_of(tensors).find("tensors are announced"), std::string::npos);
  std::string pairs = with_architecture().bytes();
  pairs.replace(16, 8, raw(absurd));
  EXPECT_NE(error_of(pairs).find("pairs are announced"), std::string::npos);
  const auto text = with_architecture().pair("x", 8, raw(absurd));
  EXPECT_NE(error_of(text.bytes()).find("ends inside"), std::string::npos);
  const auto array = with_architecture().pair("x", 9, raw<std::uint32_t>(4) + raw(absurd));
  EXPECT_NE(error_of(array.bytes()).find("more than the file can hold"), std::string::npos);
}

TEST(Gguf, RefusesWrongStructure) {
  const std::string data(256, 'x');
  EXPECT_NE(error_of(with_architecture().pair("x", 13, "").bytes()).find("value type 13"), std::string::npos);
  EXPECT_NE(error_of(with_architecture().pair("x", 9, raw<std::uint32_t>(9) + raw<std::uint64_t>(0)).bytes())
                .find("array of arrays"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().pair_u32("x", 1).pair_u32("x", 2).bytes()).find("stands twice"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().pair_u32("general.alignment", 24).bytes()).find("power of two"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {}, 0, 0).data(data).bytes()).find("0 dimensions"),
            std::string::npos);
  EXPECT_NE(
      error_of(with_architecture().tensor_info("t", {1, 1, 1, 1, 1}, 0, 0).data(data).bytes()).find("5 dimensions"),
      std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {4, 0}, 0, 0).data(data).bytes()).find("dimension of zero"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {4}, 77, 0).data(data).bytes()).find("element type 77"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {33}, 8, 0).data(data).bytes()).find("impossible shape"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {4}, 0, 4).data(data).bytes()).find("not a multiple of 32"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {16}, 0, 0).tensor_info("u", {16}, 0, 32).data(data).bytes())
                .find("overlaps"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor_info("t", {65}, 0, 0).data(data).bytes()).find("truncated"),
            std::string::npos);
  EXPECT_NE(error_of(with_architecture().tensor("output_norm.weight", {4}).tensor("model.norm.weight", {4}).bytes())
                .find("stands twice"),
            std::string::npos);
  EXPECT_NE(error_of(GgufWriter().pair_u32("x", 1).bytes()).find("general.architecture"), std::string::npos);
  EXPECT_NE(error_of(with_architecture().pair_text("llama.block_count", "5").bytes()).find("llama.block_count"),
            std::string::npos);
}

TEST(Gguf, AcceptsPerLayerListsOnlyWhenAllAreEqual) {
  const auto equal =
      load_bytes(with_architecture().pair_numbers<std::uint32_t>("llama.attention.head_count_kv", 4, {4, 4}).bytes());
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_EQ((*equal)->config.num_kv_heads, 4u);
  EXPECT_NE(
      error_of(with_architecture().pair_numbers<std::uint32_t>("llama.attention.head_count_kv", 4, {4, 2}).bytes())
          .find("for all layers"),
      std::string::npos);
}

TEST(Gguf, EveryTruncationIsAnError) {
  const std::string bytes = testing::tiny_llama_gguf().bytes();
  const std::size_t header_end = bytes.find("blk.0.ffn_down.weight") + 64;
  for (std::size_t length = 0; length < bytes.size(); length += length < header_end ? 3 : 97)
    EXPECT_NE(error_of(std::string_view(bytes).substr(0, length)), "no error") << length;
}

TEST(Gguf, FlippedBytesNeverCrash) {
  const std::string bytes = testing::tiny_llama_gguf().pair_texts("tokenizer.ggml.tokens", {"a", "b", "c"}).bytes();
  Rng rng(1, 0);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 3; ++flips)
      damaged[static_cast<std::size_t>(rng.uniform_int(0, 1400))] = static_cast<char>(rng.uniform_int(0, 255));
    refused += load_bytes(damaged) ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Gguf, ReadsStories260K) {
  const auto path = testing::shared_file("data/models/stories260K.gguf");
  // The file lies beside the project and is no part of it; the tests above cover the format without it.
  if (!path) GTEST_SKIP() << "data/models/stories260K.gguf is not there";
  const auto model = load_model(*path);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->tensors.size(), 48u);
  EXPECT_EQ((*model)->config.num_layers, 5u);
  EXPECT_EQ((*model)->config.num_kv_heads, 4u);
  EXPECT_EQ((*model)->config.vocab_size, 512u);
  EXPECT_FALSE((*model)->config.tie_word_embeddings);
  EXPECT_TRUE((*model)->unknown_tensors.empty());
}

TEST(Gguf, VocabularyAloneIsNoModel) {
  const auto path = testing::shared_file("data/gguf/ggml-vocab-llama-spm.gguf");
  // The file lies beside the project and is no part of it.
  if (!path) GTEST_SKIP() << "data/gguf/ggml-vocab-llama-spm.gguf is not there";
  EXPECT_TRUE(load_gguf(*path));
  const auto model = load_model(*path);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("only a vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace tokenstone::modelfile
