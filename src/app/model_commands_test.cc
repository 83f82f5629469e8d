// `model inspect` and `tokenize` as a person meets them: output, exit codes, messages.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/text.h"
#include "modelfile/test_files.h"
#include "support/shared_data.h"
#include "token/test_vocabularies.h"

namespace tokenstone::app {
namespace {

struct Ran {
  int code = 0;
  std::string out, err;
};

Ran run(int (*command)(const Args&), const Args& args) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.code = command(args);
  std::fflush(stdout);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

std::string tiny_model() {
  static const std::string path = [] {
    testing::GgufWriter writer = testing::tiny_llama_gguf();
    writer.tensor("blk.0.of_a_kind_that_nobody_knows.weight", {8});
    return testing::write_file(testing::temporary_folder() / "tiny.gguf", writer.bytes()).string();
  }();
  return path;
}

std::string tiny_tokenizer() {
  static const std::string path =
      testing::write_file(testing::temporary_folder() / "tokenizer.json", testing::ByteLevelJson{}.bytes()).string();
  return path;
}

TEST(ModelInspect, ShowsShapeAndFigures) {
  const Ran ran = run(run_model, {"inspect", tiny_model()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("Architecture        llama\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("Heads               2 (KV 1, dimension 4)\n"), std::string::npos);
  EXPECT_NE(ran.out.find("KV per token        16 bytes in bfloat16, 32 bytes in float32\n"), std::string::npos);
  EXPECT_NE(ran.out.find("of_a_kind_that_nobody_knows"), std::string::npos);
  EXPECT_NE(ran.out.find("not usable"), std::string::npos);
}

TEST(ModelInspect, GivesJsonAlone) {
  const Ran ran = run(run_model, {"inspect", tiny_model(), "--json", "-"});
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["config"]["num_key_value_heads"], 1);
  EXPECT_EQ(json["dtypes"]["F32"]["parameters"], json["total"]["parameters"]);
  EXPECT_EQ(json["kv_elements_per_token"], 8);
  EXPECT_EQ(json["unknown_tensors"].size(), 1u);
}

TEST(ModelInspect, ErrorsExitWithOne) {
  for (const Args& args : std::vector<Args>{
           {}, {"make"}, {"inspect"}, {"inspect", "/no/such/file"}, {"inspect", tiny_model(), "--json", "x"}}) {
    const Ran ran = run(run_model, args);
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.out.empty());
    EXPECT_FALSE(ran.err.empty());
  }
}

TEST(Tokenize, ShowsTokensAndTextBothWays) {
  const Ran table = run(run_tokenize, {"--tokenizer", tiny_tokenizer(), "--text", "low lower\n"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("     258  \" low\"\n"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("      10  \"\\n\"\n"), std::string::npos);
  EXPECT_NE(table.out.find("4 tokens, 10 bytes"), std::string::npos);
  EXPECT_EQ(run(run_tokenize, {"--tokenizer", tiny_tokenizer(), "--text", "low lower", "--ids"}).out, "257 258 259\n");
  EXPECT_EQ(run(run_tokenize, {"--tokenizer", tiny_tokenizer(), "--text", "257, 258 259", "--decode"}).out,
            "low lower\n");
  const auto file = testing::write_file(testing::temporary_folder() / "text", "low");
  EXPECT_EQ(run(run_tokenize, {"--tokenizer", tiny_tokenizer(), file.string(), "--ids"}).out, "257\n");
  const auto json =
      nlohmann::json::parse(run(run_tokenize, {"--tokenizer", tiny_tokenizer(), "--text", "low", "--json", "-"}).out);
  EXPECT_EQ(json["tokens"], nlohmann::json::array({257}));
}

TEST(Tokenize, ErrorsExitWithOne) {
  const std::string path = tiny_tokenizer();
  for (const Args& args : std::vector<Args>{{},
                                            {"--tokenizer", "/no/such/file", "--text", "x"},
                                            {"--tokenizer", path, "--text", "x", "file"},
                                            {"--tokenizer", path, "/no/such/file"},
                                            {"--tokenizer", path, "--text", "9999", "--decode"},
                                            {"--tokenizer", path, "--text", "x", "--decode"},
                                            {"--tokenizer", path, "--text", "1", "--decode", "--ids"}}) {
    const Ran ran = run(run_tokenize, args);
    EXPECT_EQ(ran.code, 1);
    EXPECT_FALSE(ran.err.empty());
  }
}

}  // namespace
}  // namespace tokenstone::app
