#include <gtest/gtest.h>

#include "base/rng.h"
#include "modelfile/model.h"
#include "modelfile/test_files.h"
#include "support/shared_data.h"

namespace tokenstone::modelfile {
namespace {

using testing::raw;
using testing::safetensors_bytes;
using testing::write_file;

constexpr std::string_view kConfig =
    R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
  "vocab_size": 12, "eos_token_id": [2, 3], "tie_word_embeddings": true})";
constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt"},"model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("lm_head.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]}})";

std::filesystem::path folder() {
  static const std::filesystem::path made = [] {
    const auto fresh = testing::temporary_folder();
    write_file(fresh / "config.json", kConfig);
    return fresh;
  }();
  return made;
}

Result<std::shared_ptr<const ModelFile>> load_bytes(std::string_view bytes, const LoadOptions& options = {}) {
  return load_model(write_file(folder() / "model.safetensors", bytes), options);
}

std::string error_of(std::string_view header, std::string_view data) {
  const auto model = load_bytes(safetensors_bytes(header, data));
  return model ? "no error" : model.error().message;
}

TEST(Safetensors, ReadsTensorsAndConfig) {
  const auto model = load_bytes(safetensors_bytes(kHeader, std::string(16, 'x')));
  ASSERT_TRUE(model) << model.error().message;
  const TensorView* head = (*model)->find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->dtype, DType::bf16);
  EXPECT_EQ(head->shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(head->data.size(), 8u);
  EXPECT_EQ((*model)->config.num_kv_heads, 2u);
  EXPECT_EQ((*model)->config.head_dim, 4u);
  EXPECT_FALSE((*model)->config.rope_interleaved);
  EXPECT_EQ((*model)->config.eos_token_ids, (std::vector<TokenId>{2, 3}));
}

// The header's length decides where the data begins; elements must be aligned all the same.
TEST(Safetensors, AlignsElementsUnderEveryHeaderLength) {
  for (int blanks = 0; blanks < 8; ++blanks) {
    const std::string data = raw(1.5f) + raw(-2.0f) + std::string(8, 'x');
    const auto model =
        load_bytes(safetensors_bytes(std::string(kHeader) + std::string(static_cast<std::size_t>(blanks), ' '), data));
    ASSERT_TRUE(model) << model.error().message;
    const TensorView* norm = (*model)->find("model.norm.weight");
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(norm->data.data()) % alignof(float), 0u);
    float second = 0;
    std::memcpy(&second, norm->data.data() + 4, sizeof second);
    EXPECT_EQ(second, -2.0f);
  }
}

TEST(Safetensors, RefusesWrongHeaders) {
  const std::string data(16, 'x');
  EXPECT_NE(error_of("[1, 2]", data).find("expected a JSON object"), std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"shape":[4],"data_offsets":[0,16]}})", data).find("no dtype"), std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F33","shape":[4],"data_offsets":[0,16]}})", data).find("unknown dtype \"F33\""),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,20]}})", data).find("data_offsets [0, 20]"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})", data).find("data_offsets [16, 0]"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", data).find("whole numbers"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})", data).find("does not fill"),
            std::string::npos);
  EXPECT_NE(
      error_of(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})",
          data)
          .find("overlaps"),
      std::string::npos);
  EXPECT_NE(
      error_of(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
          data)
          .find("hole of 4 bytes"),
      std::string::npos);
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", data).find("end at byte 8"),
            std::string::npos);
  EXPECT_NE(
      error_of(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
          data)
          .find("stands twice"),
      std::string::npos);
  // 2^42 + 1 by 2^22 elements of 4 bytes wrap to a small product.
  EXPECT_NE(error_of(R"({"a":{"dtype":"F32","shape":[4398046511105,4194304],"data_offsets":[0,16]}})", data)
                .find("does not fill"),
            std::string::npos);
}

// LDR-05, LDR-08: the length is bounded by the file and by an option, before anything is allocated.
TEST(Safetensors, BoundsTheHeaderLength) {
  const auto beyond = load_bytes(raw(~0ull) + std::string(100, '{'));
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().message.find("18446744073709551615"), std::string::npos);
  LoadOptions small;
  small.max_header_bytes = 10;
  const auto limited = load_bytes(safetensors_bytes(kHeader, std::string(16, 'x')), small);
  ASSERT_FALSE(limited);
  EXPECT_NE(limited.error().message.find("the limit is 10"), std::string::npos);
  const auto page = load_bytes("<html><body>404 not found</body></html>");
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().message.find("a web page"), std::string::npos);
}

TEST(Safetensors, ReadsShardsByTheIndex) {
  const auto home = testing::temporary_folder();
  write_file(home / "config.json", kConfig);
  write_file(home / "one.safetensors",
             safetensors_bytes(R"({"model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                               std::string(8, 'x')));
  write_file(home / "two.safetensors",
             safetensors_bytes(R"({"odd":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", std::string(4, 'x')));
  const auto index = home / "model.safetensors.index.json";
  write_file(index, R"({"weight_map":{"model.norm.weight":"one.safetensors","odd":"two.safetensors"}})");
  const auto model = load_model(home);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->tensors.size(), 2u);
  EXPECT_EQ((*model)->unknown_tensors, (std::vector<std::string>{"odd"}));
  write_file(index, R"({"weight_map":{"model.norm.weight":"two.safetensors"}})");
  EXPECT_NE(load_model(home).error().message.find("two.safetensors does not hold"), std::string::npos);
  write_file(index, R"({"weight_map":{"model.norm.weight":"../one.safetensors"}})");
  EXPECT_NE(load_model(home).error().message.find("same folder"), std::string::npos);
  write_file(index, R"({"weight_map":{"model.norm.weight":"three.safetensors"}})");
  EXPECT_NE(load_model(home).error().message.find("three.safetensors"), std::string::npos);
}

TEST(Safetensors, DamagedFilesNeverCrash) {
  const std::string bytes = safetensors_bytes(kHeader, std::string(16, 'x'));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(load_bytes(bytes.substr(0, length))) << length;
  Rng rng(2, 0);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 2; ++flips)
      damaged[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(bytes.size()) - 1))] =
          static_cast<char>(rng.uniform_int(0, 255));
    (void)load_bytes(damaged);
  }
}

TEST(ModelPath, SaysWhatIsMissing) {
  const auto home = testing::temporary_folder();
  EXPECT_NE(load_model(home / "absent").error().message.find("no such file"), std::string::npos);
  EXPECT_NE(load_model(home).error().message.find("expected model.safetensors"), std::string::npos);
  write_file(home / "pytorch_model.bin", "PK\x03\x04");
  EXPECT_NE(load_model(home / "pytorch_model.bin").error().message.find("convert it to safetensors"),
            std::string::npos);
  write_file(home / "model.safetensors", safetensors_bytes(kHeader, std::string(16, 'x')));
  EXPECT_NE(load_model(home).error().message.find("config.json"), std::string::npos);
}

std::string config_error(std::string_view json) {
  const auto home = testing::temporary_folder();
  const auto config = load_config(write_file(home / "config.json", json));
  return config ? "no error" : config.error().message;
}

TEST(Config, RefusesWrongTypes) {
  EXPECT_NE(config_error("not json").find("expected a JSON object"), std::string::npos);
  EXPECT_NE(config_error("{}").find("model_type"), std::string::npos);
  EXPECT_NE(config_error(R"({"model_type":"llama","hidden_size":-1})").find("\"hidden_size\" must be a whole number"),
            std::string::npos);
  EXPECT_NE(config_error(R"({"model_type":"llama","hidden_size":99999999999})").find("hidden_size"), std::string::npos);
  EXPECT_NE(config_error(R"({"model_type":"llama","rope_theta":"x"})").find("rope_theta"), std::string::npos);
  EXPECT_NE(config_error(R"({"model_type":"llama","eos_token_id":["x"]})").find("eos_token_id"), std::string::npos);
  EXPECT_NE(config_error(R"({"model_type":"llama","rope_scaling":3})").find("rope_scaling"), std::string::npos);
}

TEST(Config, NamesRopeScalingAndReadsNestedText) {
  const auto home = testing::temporary_folder();
  const auto load = [&](std::string_view json) { return load_config(write_file(home / "config.json", json)).value(); };
  EXPECT_EQ(load(R"({"model_type":"llama","rope_scaling":{"rope_type":"llama3","factor":8}})").rope_scaling, "llama3");
  EXPECT_EQ(load(R"({"model_type":"llama","rope_scaling":{"type":"linear","factor":2}})").rope_scaling, "linear");
  EXPECT_EQ(load(R"({"model_type":"llama","rope_scaling":null})").rope_scaling, "");
  const ModelConfig newer =
      load(R"({"model_type":"llama","rope_parameters":{"rope_type":"default","rope_theta":1e6}})");
  EXPECT_EQ(newer.rope_scaling, "");
  EXPECT_EQ(newer.rope_theta, 1e6);
  const ModelConfig nested =
      load(R"({"model_type":"gemma4","text_config":{"model_type":"gemma4_text","hidden_size":64}})");
  EXPECT_EQ(nested.architecture, "gemma4");
  EXPECT_EQ(nested.hidden_size, 64u);
  write_file(home / "generation_config.json", R"({"eos_token_id":[2,7]})");
  EXPECT_EQ(load(R"({"model_type":"llama","eos_token_id":2})").eos_token_ids, (std::vector<TokenId>{2, 7}));
}

TEST(Config, ReadsRealOnes) {
  const auto configs = testing::shared_file("data/model_configs");
  // The files lie beside the project and are no part of it.
  if (!configs) GTEST_SKIP() << "data/model_configs is not there";
  for (const auto& entry : std::filesystem::directory_iterator(*configs)) {
    if (entry.path().filename().string().find("quant") != std::string::npos) continue;
    const auto config = load_config(entry.path());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_GT(config->hidden_size, 0u) << entry.path();
    EXPECT_GT(config->num_layers, 0u) << entry.path();
  }
}

TEST(Safetensors, ReadsStories260K) {
  const auto weights = testing::shared_file("data/models/stories260K_hf.safetensors");
  const auto config = testing::shared_file("data/models/stories260K_config.json");
  // The files lie beside the project and are no part of it.
  if (!weights || !config) GTEST_SKIP() << "data/models/stories260K_hf.safetensors is not there";
  const auto home = testing::temporary_folder();
  std::filesystem::copy_file(*weights, home / "model.safetensors");
  std::filesystem::copy_file(*config, home / "config.json");
  const auto model = load_model(home);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->tensors.size(), 47u);
  EXPECT_TRUE((*model)->unknown_tensors.empty());
  EXPECT_TRUE((*model)->config.tie_word_embeddings);
}

}  // namespace
}  // namespace tokenstone::modelfile
