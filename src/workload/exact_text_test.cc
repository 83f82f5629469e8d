// Random text against real tokenizers: the count that a server will find is the count that was asked.
#include <gtest/gtest.h>

#include <set>

#include "support/shared_data.h"
#include "workload/source.h"

namespace tokenstone::workload {
namespace {

using tokenstone::testing::shared_file;

void expect_exact_text(const token::TokenizerPtr& tokenizer, std::int64_t length, std::uint32_t prompts) {
  WorkloadOptions options;
  options.dataset_name = "random";
  options.random_input_len = length;
  auto source = make_source(options, tokenizer);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  std::set<std::string> texts;
  for (std::uint32_t i = 0; i < prompts; ++i) {
    const auto spec = (*source)->at(i);
    const auto& text = std::get<std::string>(spec.prompt);
    EXPECT_EQ(static_cast<std::int64_t>(tokenizer->encode(text, {}).size()), length) << tokenizer->name();
    EXPECT_EQ(spec.prompt_len, length);
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), prompts);
  EXPECT_TRUE((*source)->info().notes.empty()) << (*source)->info().notes[0];
}

TEST(ExactText, BuiltInTokenizers) {
  for (const std::size_t vocabulary : {32'000u, 49'152u}) {
    expect_exact_text(token::builtin_tokenizer(vocabulary), 1, 20);
    expect_exact_text(token::builtin_tokenizer(vocabulary), 128, 50);
    expect_exact_text(token::builtin_tokenizer(vocabulary), 8192, 3);
  }
}

TEST(ExactText, RealVocabularies) {  // DAT-01: 8192 asked, 8179 made
  for (const char* name : {"data/tokenizers/TinyLlama_v1.1__tokenizer.json", "data/tokenizers/qwen3_tokenizer.json"}) {
    const auto path = shared_file(name);
    // The reference material is not part of the project; the fitting is covered by the made-up tokenizers of
    // source_test.
    if (!path) GTEST_SKIP() << name << " is not there";
    const auto tokenizer = token::load_tokenizer(*path);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    expect_exact_text(*tokenizer, 32, 50);
    expect_exact_text(*tokenizer, 8192, 3);
  }
}

}  // namespace
}  // namespace tokenstone::workload
