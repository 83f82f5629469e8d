#include "engine/engine_options.h"

#include <gtest/gtest.h>

#include "engine/kv_plan.h"
#include "engine/model_shape.h"
#include "modelfile/model.h"

namespace tokenstone::engine {
namespace {

TEST(EngineOptions, DefaultsAreGood) { EXPECT_TRUE(validate({}).empty()); }

TEST(EngineOptions, EveryBadFieldIsNamedAtOnce) {
  EngineOptions options;
  options.block_size = 17;
  options.max_num_seqs = 0;
  options.dtype = "bfloat";
  options.kv_cache_memory = 0;
  options.variant = "naive";
  options.max_model_len = 1;
  options.threads = 1000;
  std::vector<std::string> params;
  for (const Error& e : validate(options)) params.push_back(e.param);
  EXPECT_EQ(params, (std::vector<std::string>{"dtype", "variant", "block-size", "threads", "max-num-seqs",
                                              "max-model-len", "kv-cache-memory"}));
}

TEST(EngineOptions, TheNearestNameIsGiven) {
  EngineOptions options;
  options.dtype = "bfloat1";
  ASSERT_EQ(validate(options).size(), 1u);
  EXPECT_NE(validate(options)[0].message.find("did you mean 'bfloat16'"), std::string::npos);
}

TEST(EngineOptions, BudgetBelowOneTokenEach) {
  EngineOptions options;
  options.max_num_seqs = 300;
  options.max_num_batched_tokens = 200;
  ASSERT_EQ(validate(options).size(), 1u);
  EXPECT_EQ(validate(options)[0].param, "max-num-batched-tokens");
}

TEST(KvPlan, BuiltinShapesTakeWhatTheKvHolds) {
  // tiny-15m: 6 layers x 6 heads x 2 x 48 x 2 bytes = 6,912 bytes a token; 256 MiB hold 2,427 blocks of 16.
  const auto tiny = plan_kv(*find_builtin_shape("tiny-15m"), Precision::bfloat16, {});
  ASSERT_TRUE(tiny.has_value());
  EXPECT_EQ(tiny->num_blocks, 2427u);
  EXPECT_EQ(tiny->max_model_len, 32768u);
  const auto smol = plan_kv(*find_builtin_shape("smollm2-135m"), Precision::bfloat16, {});
  ASSERT_TRUE(smol.has_value());
  EXPECT_EQ(smol->max_model_len, smol->num_blocks * 16);
  EXPECT_EQ(smol->warnings.size(), 1u);
}

TEST(KvPlan, TooLittleIsRefusedWithTheNumberThatWouldDo) {
  EngineOptions options;
  options.kv_cache_memory = 1000;
  const auto shape = *find_builtin_shape("tiny-15m");
  const auto none = plan_kv(shape, Precision::bfloat16, options);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("110592"), std::string::npos) << none.error().message;
  options.kv_cache_memory = 110592;
  EXPECT_EQ(plan_kv(shape, Precision::bfloat16, options)->max_model_len, 16u);
  options.max_model_len = 17;
  const auto longer = plan_kv(shape, Precision::bfloat16, options);
  ASSERT_FALSE(longer.has_value());
  EXPECT_NE(longer.error().message.find("221184"), std::string::npos) << longer.error().message;
}

TEST(KvPlan, AboveTheModelsOwnContextIsAWarning) {
  EngineOptions options;
  ModelShape shape = *find_builtin_shape("tiny-15m");
  shape.context = 512;
  options.max_model_len = 600;
  const auto plan = plan_kv(shape, Precision::bfloat16, options);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->max_model_len, 600u);
  EXPECT_EQ(plan->warnings.size(), 1u);
}

TEST(ModelShape, ParameterCounts) {
  EXPECT_EQ(find_builtin_shape("tiny-15m")->parameters(), 15191712u);
  EXPECT_EQ(find_builtin_shape("stories-110m")->parameters(), 109529856u);
  EXPECT_EQ(find_builtin_shape("smollm2-135m")->parameters(), 134515008u);
}

TEST(ModelShape, OtherArchitecturesAndBadNumbersAreRefusedByName) {
  modelfile::ModelConfig config;
  config.architecture = "qwen2";
  EXPECT_NE(shape_from_config(config).error().message.find("qwen2"), std::string::npos);
  config = {.architecture = "llama",
            .hidden_size = 64,
            .num_layers = 2,
            .num_heads = 8,
            .num_kv_heads = 3,
            .intermediate_size = 33,
            .vocab_size = 10};
  const auto shape = shape_from_config(config);
  ASSERT_FALSE(shape.has_value());
  EXPECT_NE(shape.error().message.find("8 heads over 3"), std::string::npos);
  EXPECT_NE(shape.error().message.find("intermediate_size 33"), std::string::npos);
}

}  // namespace
}  // namespace tokenstone::engine
