// Loading weights from (in-memory) files: order of rows, element types, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/weight_source.h"
#include "modelfile/model.h"

namespace tokenstone::engine {
namespace {

using modelfile::DType;

ModelShape shape() {
  ModelShape s;
  s.name = "file";
  s.hidden = 8;
  s.layers = 1;
  s.heads = 2;
  s.kv_heads = 1;
  s.head_dim = 4;
  s.ffn = 6;
  s.vocab = 5;
  return s;
}

/// Element (r, c) of every tensor is 100 r + c.
struct TestFile {
  std::shared_ptr<modelfile::ModelFile> file = std::make_shared<modelfile::ModelFile>();
  std::shared_ptr<std::vector<std::vector<float>>> memory = std::make_shared<std::vector<std::vector<float>>>();

  TestFile() {
    file->path = "test";
    file->storage = memory;
    memory->reserve(20);
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens.weight", {5, 8});
    add("model.norm.weight", {8});
    add(layer + "self_attn.q_proj.weight", {8, 8});
    add(layer + "self_attn.k_proj.weight", {4, 8});
    add(layer + "self_attn.v_proj.weight", {4, 8});
    add(layer + "self_attn.o_proj.weight", {8, 8});
    add(layer + "mlp.gate_proj.weight", {6, 8});
    add(layer + "mlp.up_proj.weight", {6, 8});
    add(layer + "mlp.down_proj.weight", {8, 6});
    add(layer + "input_layernorm.weight", {8});
    add(layer + "post_attention_layernorm.weight", {8});
  }
  void add(const std::string& name, std::vector<std::uint64_t> dims) {
    const std::size_t columns = dims.back(), rows = dims.size() == 2 ? dims[0] : 1;
    std::vector<float>& values = memory->emplace_back();
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) values.push_back(static_cast<float>(100 * r + c));
    file->tensors[name] = {name, name, DType::f32, "F32", std::move(dims), std::as_bytes(std::span(values))};
  }
};

TEST(FileWeights, RowsComeAsTheyStand) {
  TestFile f;
  const auto weights = make_file_weights(shape(), f.file);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  float out[8];
  (*weights)->row(Tensor::q, 0, 5, out);
  EXPECT_EQ(out[3], 503.0f);
}

TEST(FileWeights, InterleavedRotationIsUndoneForQAndKOnly) {
  TestFile f;
  ModelShape s = shape();
  s.rope_interleaved = true;
  const auto weights = make_file_weights(s, f.file);
  ASSERT_TRUE(weights.has_value());
  float out[8];
  std::vector<float> q_rows, v_rows;
  for (std::size_t r = 0; r < 8; ++r) {
    (*weights)->row(Tensor::q, 0, r, out);
    q_rows.push_back(out[0] / 100);
  }
  (*weights)->row(Tensor::v, 0, 1, out);
  EXPECT_EQ(q_rows, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(out[0], 100.0f);
}

TEST(FileWeights, HalfPrecisionIsExact) {
  TestFile f;
  const std::uint16_t bits[8] = {0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff, 0x7c00, 0x8000, 0x3555};
  auto& view = f.file->tensors["model.norm.weight"];
  view.dtype = DType::f16;
  view.data = std::as_bytes(std::span(bits));
  const auto weights = make_file_weights(shape(), f.file);
  float out[8];
  (*weights)->row(Tensor::final_norm, 0, 0, out);
  const float expected[8] = {1, -2, 0x1p-24f, 1023 * 0x1p-24f, 65504, INFINITY, -0.0f, 0.333251953125f};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(FileWeights, WhatIsWrongIsNamed) {
  TestFile f;
  f.file->tensors.erase("model.norm.weight");
  f.file->tensors["model.layers.0.mlp.up_proj.weight"].shape = {8, 6};
  f.file->tensors["model.layers.0.mlp.down_proj.weight"].dtype = DType::other;
  f.file->tensors["model.layers.0.mlp.down_proj.weight"].dtype_name = "Q4_K";
  f.add("model.layers.0.self_attn.q_proj.bias", {8});
  f.file->unknown_tensors = {"vision.weight"};
  const auto weights = make_file_weights(shape(), f.file);
  ASSERT_FALSE(weights.has_value());
  for (const char* part : {"model.norm.weight is missing", "up_proj.weight has shape [8, 6], expected [6, 8]",
                           "down_proj.weight has type Q4_K", "q_proj.bias is not one of them", "vision.weight"})
    EXPECT_NE(weights.error().message.find(part), std::string::npos) << part << " in " << weights.error().message;
}

TEST(FileWeights, AnOwnHeadIsNeededUnlessTied) {
  TestFile f;
  ModelShape s = shape();
  s.tied_head = false;
  EXPECT_FALSE(make_file_weights(s, f.file).has_value());
  f.add("lm_head.weight", {5, 8});
  EXPECT_TRUE(make_file_weights(s, f.file).has_value());
  EXPECT_TRUE(make_file_weights(shape(), f.file).has_value()) << "a tied model may carry a copy";
}

TEST(FileWeights, AutoKeepsBfloat16Only) {
  TestFile f;
  EXPECT_EQ(natural_precision(*f.file), Precision::float32);
  f.file->tensors["model.embed_tokens.weight"].dtype = DType::f16;
  EXPECT_EQ(natural_precision(*f.file), Precision::float32);
  f.file->tensors["model.embed_tokens.weight"].dtype = DType::bf16;
  EXPECT_EQ(natural_precision(*f.file), Precision::bfloat16);
}

}  // namespace
}  // namespace tokenstone::engine
