// Traces: Azure's CSV and Mooncake's JSONL with its shared prefixes.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/shared_data.h"
#include "workload/azure_trace.h"
#include "workload/greedy_tokenizer.h"
#include "workload/source.h"

namespace tokenstone::workload {
namespace {

using testing::merging_tokenizer;
using testing::word_tokenizer;
using tokenstone::testing::shared_file;
using tokenstone::testing::temporary_folder;
using Ids = std::vector<TokenId>;

std::string file_with(std::string_view content) {
  const auto path = temporary_folder() / "trace";
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

WorkloadOptions options_for(std::string path, std::uint64_t rows = 0) {
  WorkloadOptions options;
  options.dataset_path = std::move(path);
  options.num_prompts = rows;
  options.form = PromptForm::token_ids;
  options.seeds = Seeds(1);
  return options;
}

std::unique_ptr<RequestSource> source_of(const WorkloadOptions& options,
                                         token::TokenizerPtr tokenizer = word_tokenizer()) {
  auto source = make_source(options, std::move(tokenizer));
  if (!source) ADD_FAILURE() << source.error().message;
  return source ? std::move(*source) : nullptr;
}

bool has_note(const record::DatasetInfo& info, std::string_view text) {
  return std::any_of(info.notes.begin(), info.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::size_t common_prefix(const Ids& a, const Ids& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

TEST(AzureTimes, KeepHundredNanoseconds) {  // DAT-14
  const TimeNs day = *parse_timestamp("2024-02-03 00:00:00");
  EXPECT_EQ(day, TimeNs{1706918400} * kSecond);
  EXPECT_EQ(*parse_timestamp("2024-02-03 04:05:06.1234567") - day, 14706 * kSecond + 123456700);
  EXPECT_EQ(*parse_timestamp("2024-02-03T04:05:06.1234567Z") - day, 14706 * kSecond + 123456700);
  EXPECT_EQ(*parse_timestamp("2024-02-03 01:00:00+01:00"), day);
  EXPECT_EQ(*parse_timestamp("1970-01-01 00:00:00.000000001"), 1);
  for (const char* bad : {"", "2024-02-03", "2024-13-03 00:00:00", "2024-02-03 24:00:00", "2024-02-03 04:05:06.", "0",
                          "2024-02-03 04:05:06.1234567890", "2024-02-03 04:05:06x", "2024-02-03 04:05",
                          "24-02-03 04:05:06", "0001-02-03 04:05:06"})
    EXPECT_FALSE(parse_timestamp(bad).has_value()) << bad;
}

TEST(Azure, ColumnsByNameWithoutCaseInAnyOrderQuotedCrLfAndMark) {
  const auto source =
      source_of(options_for(file_with("\xEF\xBB\xBF\"generatedtokens\",\"Note\",\"timestamp\",\"CONTEXTTOKENS\"\r\n"
                                      "40,\"a, b\",2024-02-03 04:05:06.1234567,300\r\n"
                                      "7,,2024-02-03 04:05:06.2234569,20")));
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(source->at(0).prompt_len, 300);
  EXPECT_EQ(source->at(0).output_len, 40);
  EXPECT_EQ(std::get<Ids>(source->at(0).prompt).size(), 300u);
  EXPECT_EQ(source->at(0).class_name, "azure");
  EXPECT_EQ(source->arrivals()[0], 0);
  EXPECT_EQ(source->arrivals()[1], 100000200);
}

TEST(Azure, BadRowsAreDroppedAndNamed) {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const auto source = source_of(options_for(file_with(header + "2024-02-03 04:05:08,10,5\n"
                                                               "2024-02-03 04:05:06,0,5\n"
                                                               "2024-02-03 04:05:06,10,0\n"
                                                               "yesterday,10,5\n"
                                                               "2024-02-03 04:05:06,10\n"
                                                               "2024-02-03 04:05:06,ten,5\n"
                                                               "2024-02-03 04:05:07,20,5\n")));
  const auto info = source->info();
  EXPECT_EQ(info.rows, 7u);
  EXPECT_EQ(info.used, 2u);
  EXPECT_EQ(info.dropped.size(), 5u);
  EXPECT_EQ(info.dropped.at("0 generated tokens"), 1u);
  EXPECT_TRUE(has_note(info, "not a time stamp: line 5"));
  EXPECT_TRUE(has_note(info, "1 rows went back in time"));
  EXPECT_EQ(source->at(0).prompt_len, 20);  // the earlier one first
  EXPECT_EQ(source->arrivals()[1], kSecond);
  const auto nothing = make_source(options_for(file_with(header + "2024-02-03 04:05:06,0,5\n")), word_tokenizer());
  ASSERT_FALSE(nothing.has_value());
  EXPECT_NE(nothing.error().message.find("0 of 1 rows usable; 0 context tokens: 1 (line 2)"), std::string::npos);
}

TEST(Azure, RowsAreNotRepeatedWhileTheirTimesAreKept) {
  const std::string file =
      file_with("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-03 04:05:08,10,5\n2024-02-03 04:05:09,9,5\n");
  WorkloadOptions options = options_for(file, 10);
  EXPECT_EQ(source_of(options)->planned(), 2u);
  EXPECT_TRUE(has_note(source_of(options)->info(), "10 requests were asked and 2 rows are there"));
  options.keep_trace_times = false;
  EXPECT_EQ(source_of(options)->planned(), 10u);
  EXPECT_TRUE(source_of(options)->info().oversampled);
  options.num_prompts = 1;
  EXPECT_EQ(source_of(options)->size(), 1u);
}

TEST(Azure, RealTrace) {
  const auto path = shared_file("data/traces/azure2023_code.csv");
  // The reference material is not part of the project; the format is covered by the fixtures above.
  if (!path) GTEST_SKIP() << "data/traces/azure2023_code.csv is not there";
  const auto all = source_of(options_for(path->string()));
  EXPECT_EQ(all->size(), 8819u);
  EXPECT_TRUE(all->info().dropped.empty());
  EXPECT_EQ(all->at(0).output_len, 10);
  EXPECT_EQ(all->at(0).prompt_len, 4808);
  EXPECT_EQ(all->arrivals()[1], 52 * kMillisecond);  // 04.0319600 - 03.9799600
  WorkloadOptions options = options_for(path->string(), 500);
  options.scale = 0.1;
  const auto some = source_of(options);
  EXPECT_EQ(some->planned(), 500u);
  EXPECT_EQ(some->at(0).prompt_len, 481);
  EXPECT_EQ(some->at(0).output_len, 1);
}

std::string row(double time, int input, int output, const std::string& hashes) {
  return fmt::format("{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": [{}]}}\n", time,
                     input, output, hashes);
}

TEST(Mooncake, SharedHashesAreSharedPrefixes) {
  const auto source =
      source_of(options_for(file_with(row(0, 1500, 5, "1,2,3") + row(0, 1100, 5, "1,2,9") + row(7, 600, 5, "4,2"))));
  const auto a = std::get<Ids>(source->at(0).prompt), b = std::get<Ids>(source->at(1).prompt),
             c = std::get<Ids>(source->at(2).prompt);
  EXPECT_EQ(a.size(), 1500u);
  EXPECT_EQ(b.size(), 1100u);
  EXPECT_EQ(common_prefix(a, b), 1024u);
  EXPECT_EQ(common_prefix(a, c), 0u);
  EXPECT_TRUE(
      std::equal(a.begin() + 512, a.begin() + 600, c.begin() + 512));  // block 2 says the same wherever it stands
}

TEST(Mooncake, ScaleKeepsBlocksWhole) {
  WorkloadOptions options = options_for(file_with(row(0, 6758, 500, "0,1,2,3,4,5,6,7,8,9,10,11,12,13") +
                                                  row(0, 1030, 490, "0,1,14") + row(0, 7000, 9, "0,1,2,3")));
  options.scale = 0.1;
  options.timed_trace_chunk_hash_size = 512;
  const auto source = source_of(options);
  const auto a = std::get<Ids>(source->at(0).prompt), b = std::get<Ids>(source->at(1).prompt),
             c = std::get<Ids>(source->at(2).prompt);
  EXPECT_EQ(a.size(), 13u * 51 + 10);
  EXPECT_EQ(source->at(0).output_len, 50);
  EXPECT_EQ(b.size(), 2u * 51 + 1);
  EXPECT_EQ(common_prefix(a, b), 102u);
  EXPECT_EQ(c.size(), 13u * 51 + 34);  // fewer hashes than blocks: the rest is the row's own
  EXPECT_EQ(common_prefix(a, c), 4u * 51);
}

TEST(Mooncake, MoreHashesThanBlocksIsDroppedWithItsLine) {  // DAT-11
  WorkloadOptions options = options_for(file_with(row(0, 600, 5, "1,2") + row(1, 20, 5, "1,2")));
  options.timed_trace_chunk_hash_size = 512;
  const auto source = source_of(options);
  EXPECT_EQ(source->size(), 1u);
  EXPECT_TRUE(has_note(source->info(), "more hash ids than blocks of 512 tokens: line 2"));
}

TEST(Mooncake, UnitAndBlockSizeAreGuessedSaidAndSettable) {  // DAT-17
  const std::string ms = file_with(row(0, 600, 5, "1,2") + row(3000, 600, 5, "1,3"));
  EXPECT_EQ(source_of(options_for(ms))->arrivals()[1], 3 * kSecond);
  EXPECT_TRUE(has_note(source_of(options_for(ms))->info(), "milliseconds (guessed"));
  EXPECT_TRUE(has_note(source_of(options_for(ms))->info(), "own times last 3 s"));
  EXPECT_TRUE(has_note(source_of(options_for(ms))->info(), "512 tokens per hash id (guessed"));
  WorkloadOptions options = options_for(ms);
  options.timed_trace_sec_multiplier = 1;
  EXPECT_EQ(source_of(options)->arrivals()[1], 3000 * kSecond);
  const std::string seconds = file_with(row(10.5, 30, 5, "1,2") + row(12, 48, 5, "1,2,3"));
  EXPECT_EQ(source_of(options_for(seconds))->arrivals()[1], kSecond * 3 / 2);
  EXPECT_TRUE(has_note(source_of(options_for(seconds))->info(), "16 tokens per hash id (guessed"));
  const auto spec = source_of(options_for(seconds))->at(0);
  EXPECT_EQ(common_prefix(std::get<Ids>(spec.prompt), std::get<Ids>(source_of(options_for(seconds))->at(1).prompt)),
            30u);
  const std::string whole = file_with(row(0, 30, 5, "1,2") + row(2, 48, 5, "1,2,3"));
  EXPECT_TRUE(has_note(source_of(options_for(whole))->info(), "seconds (guessed: the mean gap is 2 units)"));
}

TEST(Mooncake, OddRows) {
  WorkloadOptions options =
      options_for(file_with("{\"timestamp\": \"5\", \"input_length\": 10, \"output_length\": 2}\n"
                            "{\"timestamp\": 1, \"input_length\": 0, \"output_length\": 2}\n"
                            "{\"timestamp\": 1, \"input_length\": 1e300, \"output_length\": 2}\n"
                            "{\"input_length\": 4, \"output_length\": 2}\n"
                            "[1]\n"
                            "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 2, \"hash_ids\": {}}\n"
                            "{\"timestamp\": 9, \"input_length\": 4, \"output_length\": 2, "
                            "\"hash_ids\": [18446744073709551615]}\n"));
  options.dataset_name = "timed_trace";
  const auto source = source_of(options);
  EXPECT_EQ(source->size(), 2u);
  EXPECT_EQ(source->info().rows, 7u);
  options.timed_trace_label_input_length = "prompt_tokens";
  const auto none = make_source(options, word_tokenizer());
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("0 of 7 rows usable"), std::string::npos);
  EXPECT_NE(none.error().message.find("prompt_tokens is not a count"), std::string::npos);
}

TEST(Mooncake, AsTextSharedBlocksStayShared) {
  WorkloadOptions options = options_for(file_with(row(0, 1500, 5, "1,2,3") + row(0, 1100, 5, "1,2,9")));
  options.form = PromptForm::text;
  for (const auto& tokenizer : {word_tokenizer(true), merging_tokenizer(true), token::TokenizerPtr{}}) {
    const auto source = source_of(options, tokenizer);
    const auto one = source->at(0), other = source->at(1);
    EXPECT_EQ(one.prompt_len, 1500);
    EXPECT_EQ(other.prompt_len, 1100);
    if (tokenizer == nullptr) continue;
    const auto a = tokenizer->encode(std::get<std::string>(one.prompt), {}),
               b = tokenizer->encode(std::get<std::string>(other.prompt), {});
    EXPECT_GE(common_prefix(a, b), 700u);  // of 1024: the merging tokenizer makes fewer tokens of the same text
  }
}

TEST(Mooncake, SharingOfPromptsEqualsThatOfHashes) {
  const auto path = shared_file("data/traces/mooncake_conversation_trace.jsonl");
  // The reference material is not part of the project; sharing is covered by the fixtures above.
  if (!path) GTEST_SKIP() << "data/traces/mooncake_conversation_trace.jsonl is not there";
  constexpr std::size_t kRows = 300;
  WorkloadOptions options = options_for(path->string(), kRows);
  options.scale = 0.05;
  const auto source = source_of(options);
  ASSERT_EQ(source->planned(), kRows);
  constexpr std::size_t kBlock = 26;  // round(512 x 0.05)
  std::set<std::uint64_t> seen_hashes;
  std::set<Ids> seen_prefixes;
  std::size_t blocks = 0, hash_hits = 0, prompt_hits = 0;
  std::ifstream file(*path);
  std::string line;
  for (std::uint32_t i = 0; i < kRows && std::getline(file, line); ++i) {
    const auto json = nlohmann::json::parse(line);
    const auto spec = source->at(i);
    const auto& ids = std::get<Ids>(spec.prompt);
    const std::size_t whole = json["input_length"].get<std::size_t>() / 512;
    ASSERT_GE(ids.size() / kBlock, whole);
    for (std::size_t b = 0; b < whole; ++b) {
      ++blocks;
      hash_hits += seen_hashes.insert(json["hash_ids"][b].get<std::uint64_t>()).second ? 0 : 1;
      prompt_hits +=
          seen_prefixes.insert(Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>((b + 1) * kBlock))).second
              ? 0
              : 1;
    }
  }
  EXPECT_GT(hash_hits, 0u);
  EXPECT_EQ(prompt_hits, hash_hits) << "of " << blocks;
}

}  // namespace
}  // namespace tokenstone::workload
