// The corpus of hand-made answers (../shared/sse-corpus): every file, under every cut that its rule names, must give
// the record that expected.json states.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/assembler_harness.h"
#include "support/check_report.h"
#include "support/shared_data.h"

namespace tokenstone::http {
namespace {

using nlohmann::json;

constexpr std::size_t kCorpusFiles = 31;

std::string class_name(Failure failure) {
  static const std::map<Failure, std::string> kNames = {
      {Failure::none, ""},
      {Failure::http_status, "http_status"},
      {Failure::stream_error, "stream_error"},
      {Failure::truncated_stream, "truncated_stream"},
      {Failure::malformed_event, "malformed_event"},
      {Failure::not_event_stream, "not_event_stream"},
      {Failure::empty_stream, "empty_stream"},
      {Failure::unsupported_content_encoding, "unsupported_content_encoding"},
      {Failure::server_closed, "server_closed"}};
  return kNames.at(failure);
}

std::string text_or_empty(const json& value) { return value.is_null() ? "" : value.get<std::string>(); }
std::int64_t number_or_unknown(const json& value) { return value.is_null() ? -1 : value.get<std::int64_t>(); }

/// What every response states; a list of the fields that differ.
std::string differences(const json& expected, const AnswerRecord& record) {
  std::string out;
  const auto compare = [&](const char* field, const auto& want, const auto& got) {
    if (want != got) out += std::string(" ") + field;
  };
  compare("text_deltas", expected["text_deltas"].get<std::vector<std::string>>(), record.text);
  compare("finish_reason", text_or_empty(expected["finish_reason"]), record.summary.finish_reason);
  compare("usage_prompt_tokens", number_or_unknown(expected["usage_prompt_tokens"]),
          record.summary.usage.prompt_tokens);
  compare("usage_completion_tokens", number_or_unknown(expected["usage_completion_tokens"]),
          record.summary.usage.completion_tokens);
  compare("success", expected["success"].get<bool>(), record.summary.failure == Failure::none);
  return out;
}

std::string error_differences(const json& error, const StreamSummary& summary) {
  std::string out;
  if (error.is_null()) return summary.failure == Failure::none ? "" : " error";
  if (error["class"] != class_name(summary.failure)) out += " error.class";
  if (error.contains("code") && error["code"] != summary.error_code) out += " error.code";
  if (error.contains("message") && summary.error.find(error["message"].get<std::string>()) == std::string::npos) {
    out += " error.message";
  }
  return out;
}

std::string all_differences(const json& expected, const std::vector<AnswerRecord>& records) {
  const AnswerRecord& first = records.front();
  std::string out = differences(expected, first) + error_differences(expected["error"], first.summary);
  const auto compare = [&](const char* field, const auto& want, const auto& got) {
    if (want != got) out += std::string(" ") + field;
  };
  compare("reasoning_deltas", expected["reasoning_deltas"].get<std::vector<std::string>>(), first.reasoning);
  compare("tool_call_deltas", expected["tool_call_deltas"].size(), first.tool_calls.size());
  compare("http_status", expected["http_status"].get<int>(), first.summary.http_status);
  compare("done_seen", expected["done_seen"].get<bool>(), first.summary.done_seen);
  compare("dispatched_events", expected["dispatched_events"].get<std::int64_t>(), first.summary.dispatched_events);
  compare("first_token_event", number_or_unknown(expected["first_token_event"]), first.summary.first_token_event);
  compare("comment_lines", expected["comment_lines"].get<std::uint64_t>(), first.summary.comment_lines);
  if (expected.contains("connection_reusable")) {
    compare("connection_reusable", expected["connection_reusable"].get<bool>(), first.reusable);
  }
  const std::size_t responses = expected.contains("responses") ? expected["responses"].size() : 1;
  compare("responses", responses, records.size());
  for (std::size_t i = 1; i < std::min(responses, records.size()); ++i) {
    out += differences(expected["responses"][i], records[i]);
  }
  return out;
}

AnswerInput input_of(const json& expected, std::string bytes) {
  AnswerInput input;
  input.layer = expected["layer"] == "http" ? Layer::http : Layer::body;
  input.bytes = std::move(bytes);
  input.head.status = expected["http_status"];
  input.head.content_type = text_or_empty(expected["content_type"]);
  input.head.content_encoding = text_or_empty(expected["content_encoding"]);
  return input;
}

TEST(SseCorpus, EveryFileUnderEveryCut) {
  const auto folder = tokenstone::testing::shared_file("sse-corpus");
  // The corpus is reference material beside the project; the kinds of quirks it holds are tested in
  // stream_assembler_test as well.
  if (!folder) {
    tokenstone::testing::report_check({.id = "spine.sse_corpus",
                                       .unit = "files",
                                       .target = kCorpusFiles,
                                       .skipped = "../shared/sse-corpus is not there"});
    // The corpus lies beside the project and is no part of it; assembler_harness_test.cc cuts small streams of the same
    // kinds.
    GTEST_SKIP() << "../shared/sse-corpus is not there";
  }
  const json files = json::parse(tokenstone::testing::read_file(*folder / "expected.json"))["files"];
  std::size_t right = 0;
  std::size_t feedings = 0;
  for (const auto& [name, expected] : files.items()) {
    const AnswerInput input = input_of(expected, tokenstone::testing::read_file(*folder / name));
    std::string difference;
    std::size_t fed = 0;
    const bool all_cuts = expected["byte_split"]["rule"] == "all";
    const auto records = assemble_under_cuts(input, all_cuts, difference, fed);
    const std::string wrong = all_differences(expected, records);
    EXPECT_EQ(wrong, "") << name << ": " << records.front().serialized();
    EXPECT_EQ(difference, "") << name;
    right += wrong.empty() && difference.empty() ? 1 : 0;
    feedings += fed;
  }
  RecordProperty("feedings", static_cast<int>(feedings));
  tokenstone::testing::report_check({.id = "spine.sse_corpus",
                                     .value = static_cast<double>(right),
                                     .n = static_cast<double>(feedings),
                                     .unit = "files",
                                     .op = ">=",
                                     .target = kCorpusFiles,
                                     .pass = right >= kCorpusFiles && right == files.size()});
  EXPECT_EQ(right, files.size());
  EXPECT_EQ(files.size(), kCorpusFiles);
}

}  // namespace
}  // namespace tokenstone::http
