#include "http/stream_assembler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/assembler_harness.h"
#include "support/shared_data.h"

namespace tokenstone::http {
namespace {

std::string text_event(std::string_view text) {
  return "data: {\"choices\":[{\"index\":0,\"text\":\"" + std::string(text) + "\"}]}\n\n";
}
const std::string kFinish = "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
const std::string kDone = "data: [DONE]\n\n";

/// The record of a body that must not depend on its cuts.
AnswerRecord record_of(AnswerInput input) {
  std::string difference;
  std::size_t feedings = 0;
  auto records = assemble_under_cuts(input, true, difference, feedings);
  EXPECT_EQ(difference, "");
  return std::move(records.front());
}
AnswerRecord record_of(const std::string& body) { return record_of(AnswerInput{.bytes = body}); }
AnswerRecord record_of_page(const std::string& body, const std::string& type) {
  return record_of(AnswerInput{.bytes = body, .head = {.status = 200, .content_type = type}});
}
AnswerRecord record_of_http(const std::string& bytes) {
  return record_of(AnswerInput{.layer = Layer::http, .bytes = bytes});
}

TEST(Assembler, AWholeStream) {
  const auto record =
      record_of(": hi\n\n" + text_event("a") + text_event(" ") + kFinish +
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\r\n\r\n" + kDone);
  EXPECT_EQ(record.text, (std::vector<std::string>{"a", " "}));
  EXPECT_EQ(record.summary.failure, Failure::none);
  EXPECT_EQ(record.summary.finish_reason, "stop");
  EXPECT_EQ(record.summary.usage.completion_tokens, 2);
  EXPECT_EQ(record.summary.first_token_event, 0);
  EXPECT_EQ(record.summary.dispatched_events, 5);
  EXPECT_TRUE(record.summary.done_seen);
}

TEST(Assembler, NothingBehindDoneCounts) {
  const auto record =
      record_of(text_event("a") + "data: [DONE] \n\n" + text_event("no") + "data: {\"error\":\"late\"}\n\n");
  EXPECT_EQ(record.text, std::vector<std::string>{"a"});
  EXPECT_EQ(record.summary.failure, Failure::none);
}

TEST(Assembler, ACleanEndBehindAFinishReasonIsASuccessWithoutDone) {
  const auto record = record_of(text_event("a") + kFinish);
  EXPECT_EQ(record.summary.failure, Failure::none);
  EXPECT_FALSE(record.summary.done_seen);
  EXPECT_EQ(record_of(text_event("a") + kFinish + "data: {\"usage\":").summary.failure, Failure::truncated_stream);
}

TEST(Assembler, WhatTheLastEventLacksInLineEndsIsForgiven) {
  EXPECT_TRUE(record_of(text_event("a") + "data: [DONE]").summary.done_seen);
  EXPECT_EQ(record_of("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}").text,
            std::vector<std::string>{"a"});
}

TEST(Assembler, FailureClasses) {
  EXPECT_EQ(record_of(text_event("a")).summary.failure, Failure::truncated_stream);
  EXPECT_EQ(record_of(text_event("a") + "data: {\"choi").summary.failure, Failure::truncated_stream);
  EXPECT_EQ(record_of(kDone).summary.failure, Failure::empty_stream);
  EXPECT_EQ(record_of(": ping\n\n").summary.failure, Failure::empty_stream);
  EXPECT_EQ(record_of("").summary.failure, Failure::empty_stream);
  EXPECT_EQ(record_of(text_event("a") + "data: {\"x\n\n" + text_event("b") + kFinish + kDone).summary.failure,
            Failure::malformed_event);
  EXPECT_EQ(record_of(text_event("a") + "event: error\ndata: {\"m\":1}\n\n" + kDone).summary.failure,
            Failure::stream_error);
  EXPECT_EQ(record_of("<html>\n data: no</html>\n").summary.failure, Failure::not_event_stream);
}

TEST(Assembler, ABrokenEventDoesNotHideTheLaterOnes) {
  const auto record = record_of(text_event("a") + "data: {\"x\n\n" + text_event("b") + kFinish + kDone);
  EXPECT_EQ(record.text, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(record.summary.done_seen);
}

TEST(Assembler, AnErrorInTheStreamKeepsWhatCameBefore) {
  const auto record =
      record_of(text_event("a") + "data: {\"error\":{\"message\":\"engine\\nstopped\",\"code\":500}}\n\n" + kDone);
  EXPECT_EQ(record.summary.failure, Failure::stream_error);
  EXPECT_EQ(record.summary.error, "engine stopped (code 500)");
  EXPECT_EQ(record.text, std::vector<std::string>{"a"});
}

TEST(Assembler, PagesWithStatus200) {
  EXPECT_EQ(record_of_page(R"({"error":{"message":"no","code":429}})", "application/json").summary.failure,
            Failure::stream_error);
  EXPECT_EQ(record_of_page(R"({"error":{"message":"no"}})", "text/event-stream").summary.failure,
            Failure::stream_error);
  EXPECT_EQ(record_of_page(R"({"choices":[]})", "application/json").summary.failure, Failure::not_event_stream);
  const auto html = record_of_page("<html>\n<b>Gateway</b>", "text/html");
  EXPECT_EQ(html.summary.failure, Failure::not_event_stream);
  EXPECT_NE(html.summary.error.find("<html> <b>Gateway</b>"), std::string::npos) << "the first bytes are kept";
  EXPECT_EQ(record_of_page(text_event("a") + kDone, "").summary.failure, Failure::none)
      << "no content type: the lines tell";
}

TEST(Assembler, StatusAndItsText) {
  const auto json = record_of_http(
      "HTTP/1.1 429 X\r\nContent-Type: application/json\r\nContent-Length: 41\r\n\r\n"
      R"({"error":{"message":"queue full","code":1})"
      "}");
  EXPECT_EQ(json.summary.failure, Failure::http_status);
  EXPECT_EQ(json.summary.http_status, 429);
  EXPECT_EQ(record_of_http("HTTP/1.1 503 X\r\n\r\nbusy").summary.error, "HTTP 503: busy");
  EXPECT_NE(record_of_http("HTTP/1.1 302 X\r\nLocation: http://b/\r\nContent-Length: 0\r\n\r\n")
                .summary.error.find("redirected to http://b/"),
            std::string::npos);
}

TEST(Assembler, PackedBodiesAreRefusedByClass) {
  const auto record = record_of_http(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: "
      "3\r\n\r\n\x1f\x8b\x08");
  EXPECT_EQ(record.summary.failure, Failure::unsupported_content_encoding);
}

TEST(Assembler, FramingTellsAWholeBodyFromACutOne) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string event = kFinish;
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", event.size());
  EXPECT_EQ(record_of_http(head + size + event + "\r\n0\r\n\r\n").summary.failure, Failure::none);
  EXPECT_TRUE(record_of_http(head + size + event + "\r\n0\r\n\r\n").reusable);
  EXPECT_EQ(record_of_http(head + size + event + "\r\n").summary.failure, Failure::truncated_stream);
  EXPECT_EQ(record_of_http("HTTP/1.1 200 OK\r\nContent-T").summary.failure, Failure::truncated_stream);
  EXPECT_EQ(record_of_http("").summary.failure, Failure::server_closed);
  EXPECT_EQ(record_of_http("SMTP ready\r\n").summary.failure, Failure::not_event_stream);
}

TEST(Assembler, SeveralChoices) {
  const auto record = record_of(R"(data: {"choices":[{"index":1,"text":"one"},{"index":0,"text":"zero"}]})"
                                "\n\n"
                                R"(data: {"choices":[{"index":1,"text":"more","finish_reason":"length"}]})"
                                "\n\n"
                                R"(data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]})"
                                "\n\n" +
                                kDone);
  EXPECT_EQ(record.text, std::vector<std::string>{"zero"});
  EXPECT_EQ(record.summary.token_events, 2);
  EXPECT_EQ(record.summary.finish_reason, "stop");
}

TEST(Assembler, AnEventAboveTheLimitFails) {
  AnswerInput input{.bytes = text_event("a") + text_event(std::string(300, 'x')) + kDone};
  input.options.max_event_bytes = 200;
  const auto record = record_of(input);
  EXPECT_EQ(record.summary.failure, Failure::malformed_event);
  EXPECT_EQ(record.text, std::vector<std::string>{"a"});
}

TEST(Assembler, AnswersWithoutStreaming) {
  AnswerInput input{
      .bytes = R"({"choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],)"
               R"("usage":{"prompt_tokens":2,"completion_tokens":5}})",
      .head = {.status = 200, .content_type = "application/json"}};
  input.options.streamed = false;
  const auto record = record_of(input);
  EXPECT_EQ(record.summary.failure, Failure::none);
  EXPECT_EQ(record.text, std::vector<std::string>{"whole"});
  EXPECT_EQ(record.summary.usage.completion_tokens, 5);
  input.bytes = "<html>";
  EXPECT_EQ(record_of(input).summary.failure, Failure::malformed_event);
}

struct Tokens final : StreamObserver {
  std::vector<StreamToken> list;
  void on_token(const StreamToken& token, std::string_view) override { list.push_back(token); }
};

TEST(Assembler, StampsOfAReadWithSeveralEventsAreUpperBoundsForTheEarlierOnes) {
  Tokens tokens;
  BodyAssembler assembler(tokens, {});
  assembler.begin({.status = 200, .content_type = "text/event-stream"});
  assembler.body(text_event("a"), 10);
  assembler.end_of_read();
  assembler.body(text_event("b") + text_event("c"), 20);
  assembler.end_of_read();
  assembler.body(text_event("d") + kDone, 30);
  assembler.end_of_read();
  ASSERT_EQ(tokens.list.size(), 4u);
  EXPECT_FALSE(tokens.list[0].shared_stamp);
  EXPECT_TRUE(tokens.list[1].shared_stamp);
  EXPECT_FALSE(tokens.list[2].shared_stamp);
  EXPECT_TRUE(tokens.list[3].shared_stamp);
  EXPECT_EQ(tokens.list[2].arrived, 20);
}

std::vector<std::int32_t> tokens_of(const std::vector<std::string>& events) {
  Tokens tokens;
  BodyAssembler assembler(tokens, {});
  assembler.begin({.status = 200, .content_type = "text/event-stream"});
  for (const auto& event : events) assembler.body("data: " + event + "\n\n", 1);
  assembler.end_of_body(true);
  std::vector<std::int32_t> out;
  for (const auto& token : tokens.list) out.push_back(token.tokens);
  return out;
}

TEST(Assembler, TokensOfAnEventAreKnownFromContinuousUsageOnly) {
  const auto with = [](int total) {
    return R"({"choices":[{"text":"x"}],"usage":{"completion_tokens":)" + std::to_string(total) + "}}";
  };
  const std::string without = R"({"choices":[{"text":"x"}]})";
  EXPECT_EQ(tokens_of({with(1), with(4), with(5)}), (std::vector<std::int32_t>{1, 3, 1}));
  EXPECT_EQ(tokens_of({without, without}), (std::vector<std::int32_t>{-1, -1}));
  EXPECT_EQ(tokens_of({without, with(9)}), (std::vector<std::int32_t>{-1, -1}))
      << "a total at the end is not the last event's count";
}

/// Streams captured from real servers: what must hold for all of them, and the counts known for some.
struct Captured {
  const char* file;
  Layer layer;
  std::int64_t token_events;
  std::int64_t completion_tokens;
};

class CapturedStream : public ::testing::TestWithParam<Captured> {};

TEST_P(CapturedStream, IsReadToItsEnd) {
  const auto path = tokenstone::testing::shared_file(std::string("data/") + GetParam().file);
  // Captures are reference material beside the project; the rules they exercise are tested above without them.
  if (!path) GTEST_SKIP() << "../shared/data/" << GetParam().file << " is not there";
  const AnswerInput input{.layer = GetParam().layer, .bytes = tokenstone::testing::read_file(*path)};
  std::string difference;
  std::size_t feedings = 0;
  const auto records = assemble_under_cuts(input, false, difference, feedings);
  EXPECT_EQ(difference, "");
  EXPECT_EQ(records[0].summary.failure, Failure::none) << records[0].summary.error;
  EXPECT_EQ(records[0].summary.token_events, GetParam().token_events);
  EXPECT_EQ(records[0].summary.usage.completion_tokens, GetParam().completion_tokens);
}

TEST(CapturedStreams, EveryFileGivesTheSameRecordForEveryCut) {
  std::size_t files = 0;
  for (const char* folder : {"data/sse", "data/sse_llamacpp", "data/sse_llamacpp_server"}) {
    const auto path = tokenstone::testing::shared_file(folder);
    // As above: without the captures there is nothing to read here.
    if (!path) GTEST_SKIP() << "../shared/" << folder << " is not there";
    for (const auto& entry : std::filesystem::directory_iterator(*path)) {
      AnswerInput input{.bytes = tokenstone::testing::read_file(entry.path())};
      if (input.bytes.starts_with("HTTP/")) input.layer = Layer::http;
      const bool small = input.bytes.size() < 1500;
      if (input.bytes.size() < 2 || input.bytes.size() > 17'000) continue;
      std::string difference;
      std::size_t feedings = 0;
      assemble_under_cuts(input, small, difference, feedings);
      EXPECT_EQ(difference, "") << entry.path();
      ++files;
    }
  }
  EXPECT_GT(files, 60u);
}

/// All stream chunks, wherever they stand in a test-data file of another project; whole answers (with a message) are
/// left out.
void chunks_of(const nlohmann::json& json, std::vector<std::string>& chunks) {
  if (json.is_object() && json.contains("choices") && json["choices"].is_array()) {
    const auto& choices = json["choices"];
    if (choices.empty() || !choices[0].contains("message")) chunks.push_back(json.dump());
  } else if (json.is_structured()) {
    for (const auto& item : json) chunks_of(item, chunks);
  }
}

TEST(CapturedStreams, ChunksOfOtherServersAreRead) {
  const auto folder = tokenstone::testing::shared_file("data/sse_chunks");
  // As above: without the captures there is nothing to read here.
  if (!folder) GTEST_SKIP() << "../shared/data/sse_chunks is not there";
  std::size_t streams = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    std::vector<std::string> chunks;
    chunks_of(nlohmann::json::parse(tokenstone::testing::read_file(entry.path())), chunks);
    if (chunks.size() < 2) continue;
    std::string body;
    for (const auto& chunk : chunks) body += "data: " + chunk + "\n\n";
    const auto record = assemble({.bytes = body + kDone}, {}).front();
    EXPECT_EQ(record.summary.failure, Failure::none) << entry.path() << ": " << record.summary.error;
    EXPECT_EQ(record.summary.dispatched_events, static_cast<std::int64_t>(chunks.size()) + 1);
    EXPECT_GT(record.summary.token_events, 0) << entry.path();
    EXPECT_EQ(record.summary.foreign_events, 0) << entry.path();
    ++streams;
  }
  EXPECT_GE(streams, 20u);
}

INSTANTIATE_TEST_SUITE_P(
    Files, CapturedStream,
    ::testing::Values(Captured{"sse_llamacpp_server/chat_stream_usage.raw", Layer::http, 12, 12},
                      Captured{"sse_llamacpp_server/chat_stream_nousage.raw", Layer::http, 12, -1},
                      Captured{"sse_llamacpp_server/completions_stream_usage.raw", Layer::http, 12, 12},
                      Captured{"sse_llamacpp_server/completions_n2_stream.raw", Layer::http, 8, 4},
                      Captured{"sse_llamacpp_server/parallel_1.raw", Layer::http, 48, 48},
                      Captured{"sse_llamacpp/long_stream_400tok.sse", Layer::body, 399, 400},
                      Captured{"sse_llamacpp/v1_chat_completions_stream.sse", Layer::body, 48, 48},
                      Captured{"sse_llamacpp/v1_completions_stream.sse", Layer::body, 64, 64},
                      Captured{"sse/meta__llama-3.1-8b-instruct__completions__completion.streaming.1", Layer::body, 64,
                               -1},
                      Captured{"sse/azure_chat_streaming.0.sse", Layer::body, 24, -1},
                      Captured{"sse/openai_streaming_with_api_usage_and_events.0.sse", Layer::body, 699, 698}));

}  // namespace
}  // namespace tokenstone::http
