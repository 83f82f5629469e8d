// Data sets of text: sonnet, ShareGPT's format, custom JSONL; their filters, their accounts of rows, and files that are
// not what they should be.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <fmt/format.h>

#include "support/shared_data.h"
#include "workload/greedy_tokenizer.h"
#include "workload/plan_hash.h"
#include "workload/source.h"

namespace tokenstone::workload {
namespace {

using testing::word_tokenizer;
using tokenstone::testing::shared_file;
using tokenstone::testing::temporary_folder;

std::string file_with(std::string_view content) {
  const auto path = temporary_folder() / "data";
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

WorkloadOptions options_for(std::string_view name, std::string path) {
  WorkloadOptions options;
  options.dataset_name = name;
  options.dataset_path = std::move(path);
  options.seeds = Seeds(1);
  return options;
}

std::unique_ptr<RequestSource> source_of(const WorkloadOptions& options,
                                         token::TokenizerPtr tokenizer = word_tokenizer()) {
  auto source = make_source(options, std::move(tokenizer));
  if (!source) ADD_FAILURE() << source.error().message;
  return source ? std::move(*source) : nullptr;
}

std::string error_of(const WorkloadOptions& options) {
  const auto source = make_source(options, word_tokenizer());
  if (source) return "";
  EXPECT_EQ(source.error().message.find('\n'), std::string::npos);
  return source.error().message;
}

std::string text_of(const record::RequestSpec& spec) { return std::get<std::string>(spec.prompt); }

// ' aa' is one token of the word tokenizer.
std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += " aa";
  return text;
}
std::string chat(int prompt, int answer) {
  return fmt::format(R"({{"id":"x","conversations":[{{"from":"human","value":"{}"}},{{"from":"gpt","value":"{}"}}]}})",
                     words(prompt), words(answer));
}

TEST(ShareGpt, FilterIsVllmsAndCounted) {
  const std::string file =
      file_with("[" + chat(3, 10) + "," + chat(4, 4) + "," + chat(1024, 1024) + "," + chat(1025, 9) + "," +
                chat(1024, 1025) + "," + chat(10, 3) + R"(,{"conversations":[]},{"other":1},7])");
  WorkloadOptions options = options_for("sharegpt", file);
  options.disable_shuffle = true;
  options.num_prompts = 0;
  const auto source = source_of(options);
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(source->at(0).prompt_len, 4);
  EXPECT_EQ(source->at(0).output_len, 4);
  EXPECT_EQ(source->at(1).prompt_len, 1024);
  const auto info = source->info();
  EXPECT_EQ(info.rows, 9u);
  EXPECT_EQ(info.used, 2u);
  EXPECT_EQ(info.dropped, (std::map<std::string, std::uint64_t>{{"prompt under 4 tokens", 1},
                                                                {"prompt over 1024 tokens", 1},
                                                                {"over 2048 tokens in all", 1},
                                                                {"answer under 4 tokens", 1},
                                                                {"fewer than two turns", 1},
                                                                {"no list of conversations", 2}}));
}

TEST(ShareGpt, NoUsableRowSaysWhy) {  // DAT-05
  const std::string message =
      error_of(options_for("sharegpt", file_with("[" + chat(2000, 9) + "," + chat(1, 9) + "]")));
  EXPECT_NE(message.find("0 of 2 rows usable"), std::string::npos) << message;
  EXPECT_NE(message.find("prompt over 1024 tokens: 1"), std::string::npos) << message;
}

TEST(ShareGpt, OrderOfASeedIsFixed) {  // DAT-21
  std::string list = "[";
  for (int i = 0; i < 10; ++i) list += (i > 0 ? "," : "") + chat(10 + i, 5);
  const std::string file = file_with(list + "]");
  WorkloadOptions options = options_for("sharegpt", file);
  options.num_prompts = 0;
  std::vector<std::int64_t> order;
  const auto source = source_of(options);
  for (std::uint32_t i = 0; i < 10; ++i) order.push_back(source->at(i).prompt_len - 10);
  EXPECT_EQ(order, (std::vector<std::int64_t>{4, 6, 9, 2, 3, 0, 8, 1, 5, 7}));
  options.disable_shuffle = true;
  EXPECT_EQ(source_of(options)->at(3).prompt_len, 13);
}

TEST(ShareGpt, RepeatsAreStatedOrForbidden) {  // DAT-06
  WorkloadOptions options = options_for("sharegpt", file_with("[" + chat(5, 5) + "," + chat(6, 6) + "]"));
  options.num_prompts = 50;
  const auto source = source_of(options);
  EXPECT_EQ(source->planned(), 50u);
  EXPECT_TRUE(source->info().oversampled);
  EXPECT_NE(source->info().notes.at(0).find("50 requests from 2 rows"), std::string::npos);
  std::set<std::string> ids, texts;
  for (std::uint32_t i = 0; i < 50; ++i) {
    ids.insert(source->at(i).request_id);
    texts.insert(text_of(source->at(i)));
  }
  EXPECT_EQ(ids.size(), 50u);
  EXPECT_EQ(texts.size(), 2u);
  options.no_oversample = true;
  EXPECT_EQ(source_of(options)->planned(), 2u);
  EXPECT_FALSE(source_of(options)->info().oversampled);
}

TEST(ShareGpt, RealFileOfManyTurns) {
  const auto path = shared_file("data/prompts/fastchat_dummy_conversation.json");
  // The reference material is not part of the project; the format is covered by the fixtures above.
  if (!path) GTEST_SKIP() << "data/prompts/fastchat_dummy_conversation.json is not there";
  WorkloadOptions options = options_for("", path->string());
  options.num_prompts = 100;
  options.no_oversample = true;
  const auto source = source_of(options, nullptr);
  EXPECT_EQ(source->info().name, "sharegpt");
  EXPECT_EQ(source->planned(), 100u);
  EXPECT_TRUE(source->at(0).prompt_len_nominal);
}

constexpr std::string_view kCustom =
    "\xEF\xBB\xBF{\"prompt\": \"one\", \"output_tokens\": 3}\r\n"
    "\r\n"
    "not json\n"
    "{\"prompt\": \"two\"}\n"
    "{\"prompt\": [5, 6, 7], \"output_tokens\": 9}\n"
    "{\"text\": \"three\"}\n"
    "{\"prompt\": \"\", \"output_tokens\": 9}";

TEST(Custom, RowsBomAndBadLines) {  // DAT-15
  WorkloadOptions options = options_for("", file_with(kCustom));
  options.disable_shuffle = true;
  options.num_prompts = 0;
  const auto source = source_of(options);
  ASSERT_EQ(source->size(), 3u);
  EXPECT_EQ(text_of(source->at(0)), "one");
  EXPECT_EQ(source->at(0).output_len, 256);
  EXPECT_EQ(std::get<std::vector<TokenId>>(source->at(2).prompt), (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(source->at(2).prompt_len, 3);
  const auto info = source->info();
  EXPECT_EQ(info.rows, 6u);
  EXPECT_EQ(info.dropped.at("not a JSON object"), 1u);
  EXPECT_EQ(info.dropped.at("no prompt"), 1u);
  EXPECT_NE(std::find(info.notes.begin(), info.notes.end(), "1 rows dropped, not a JSON object: line 3"),
            info.notes.end());
}

TEST(Custom, MinusOneTakesTheRowsOwnLength) {
  WorkloadOptions options = options_for("custom", file_with(kCustom));
  options.custom_output_len = -1;
  options.disable_shuffle = true;
  options.num_prompts = 0;
  const auto source = source_of(options);
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(source->at(0).output_len, 3);
  EXPECT_EQ(source->at(1).output_len, 9);
  EXPECT_EQ(source->info().dropped.at("no output_tokens"), 1u);
  options.custom_output_len = 0;
  EXPECT_NE(error_of(options).find("--custom-output-len"), std::string::npos);
}

TEST(Custom, FirstRowIsNeverLostBehindAMark) {  // DAT-15 with 1, 4 and 5 rows
  for (const std::size_t rows : {1u, 4u, 5u}) {
    std::string text = "\xEF\xBB\xBF";
    for (std::size_t i = 0; i < rows; ++i) text += fmt::format("{{\"prompt\": \"p{}\"}}\n", i);
    WorkloadOptions options = options_for("custom", file_with(text));
    options.num_prompts = 0;
    EXPECT_EQ(source_of(options)->size(), rows);
  }
}

TEST(Custom, WithoutATokenizerLengthsAreEstimatedAndSaidSo) {
  const auto source = source_of(options_for("custom", file_with("{\"prompt\": \"123456789\"}")), nullptr);
  EXPECT_EQ(source->at(0).prompt_len, 3);
  EXPECT_TRUE(source->at(0).prompt_len_nominal);
  const auto warmup = source->warmup(0);
  EXPECT_EQ(warmup.prompt_len, 3);
  EXPECT_NE(text_of(warmup), "123456789");
}

TEST(Sonnet, BuiltInTextKeepsTheAskedLength) {
  WorkloadOptions options = options_for("sonnet", "");
  const auto tokenizer = word_tokenizer();
  options.sonnet_input_len = 1400;  // the word tokenizer makes about two tokens of three bytes
  options.sonnet_prefix_len = 300;
  const auto source = source_of(options, tokenizer);
  std::set<std::string> prompts;
  for (std::uint32_t i = 0; i < 30; ++i) {
    const auto spec = source->at(i);
    EXPECT_LE(spec.prompt_len, 1400);
    EXPECT_GT(spec.prompt_len, 1350);
    EXPECT_EQ(spec.output_len, 150);
    EXPECT_EQ(text_of(spec).substr(0, 100), text_of(source->at(0)).substr(0, 100));
    prompts.insert(text_of(spec));
  }
  EXPECT_EQ(prompts.size(), 30u);
}

TEST(Sonnet, TooShortALengthIsRefusedAndEnds) {  // vLLM's loop may not end
  WorkloadOptions options = options_for("sonnet", "");
  options.sonnet_input_len = 20;
  EXPECT_NE(error_of(options).find("--sonnet-input-len 20 is too short"), std::string::npos);
}

TEST(Sonnet, OwnFileWithOneFittingLine) {
  WorkloadOptions options = options_for("sonnet", file_with(words(500) + "\n" + words(600) + "\nshort\n"));
  options.sonnet_input_len = 80;
  options.sonnet_prefix_len = 0;
  const auto source = source_of(options);
  EXPECT_NE(text_of(source->at(0)).find("short"), std::string::npos);
  EXPECT_LE(source->at(0).prompt_len, 80);
}

TEST(Files, EachWrongFileHasItsLine) {
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00.0,5,5\n";
  EXPECT_NE(error_of(options_for("custom", "/no/such/file")).find("No such file"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", temporary_folder().string())).find("is a folder"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with(""))).find("is empty"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with("\xEF\xBB\xBF \r\n"))).find("is empty"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with("\x1F\x8B\x08zz"))).find("compressed"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with("\xFF\xFE{"))).find("UTF-16"), std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with(std::string_view("a\0b", 3)))).find("is not text"),
            std::string::npos);
  EXPECT_NE(error_of(options_for("custom", file_with(azure))).find("looks like azure"), std::string::npos);
  EXPECT_NE(error_of(options_for("sharegpt", file_with(azure))).find("not valid JSON; it looks like azure"),
            std::string::npos);
  EXPECT_NE(error_of(options_for("sharegpt", file_with("[" + chat(9, 9)))).find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of(options_for("sharegpt", file_with("[]"))).find("an empty list"), std::string::npos);
  EXPECT_NE(error_of(options_for("azure", file_with("[]"))).find("has not the columns"), std::string::npos);
  EXPECT_NE(error_of(options_for("mooncake", file_with("{\"prompt\":\"a\"}"))).find("looks like custom"),
            std::string::npos);
}

TEST(Files, KindIsToldFromTheContent) {  // DAT-19
  EXPECT_EQ(*detect_dataset(file_with("\xEF\xBB\xBF\"generatedtokens\",TimeStamp,contexttokens\n")),
            DatasetKind::azure);
  EXPECT_EQ(*detect_dataset(file_with("\n{\"timestamp\":0,\"input_length\":5}")), DatasetKind::mooncake);
  EXPECT_EQ(*detect_dataset(file_with("{\"prompt\":\"a\"}")), DatasetKind::custom);
  EXPECT_EQ(*detect_dataset(file_with(" [{\"conversations\":[]}]")), DatasetKind::sharegpt);
  for (const std::string_view odd : {"a,b,c\n1,2,3\n", "{\"a\":1}", "{", "\xFF\xFF\xFF", "\"", "{\"prompt\":", "7"}) {
    const auto kind = detect_dataset(file_with(odd));
    ASSERT_FALSE(kind.has_value()) << odd;
    EXPECT_NE(kind.error().message.find("tried azure"), std::string::npos);
  }
  // The kind that is named wins: these rows have both forms' keys.
  const std::string both =
      file_with("{\"prompt\":\"a\",\"timestamp\":1,\"input_length\":5,\"output_length\":2,\"hash_ids\":[]}");
  EXPECT_EQ(source_of(options_for("mooncake", both))->info().name, "mooncake");
  EXPECT_EQ(source_of(options_for("custom", both))->info().name, "custom");
}

}  // namespace
}  // namespace tokenstone::workload
