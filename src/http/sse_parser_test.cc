#include "http/sse_parser.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tokenstone::http {
namespace {

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece, bool flush = false) {
  SseParser parser;
  SseEvent event;
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    parser.feed(bytes.substr(at, piece));
    while (parser.next(event)) events.push_back(std::string(event.name) + "|" + std::string(event.data));
  }
  if (flush && parser.finish(event)) events.push_back("flushed|" + std::string(event.data));
  return events;
}

using List = std::vector<std::string>;

TEST(SseParser, ReadsTheExamplesOfTheStandard) {
  // The four examples of the standard's section on parsing.
  EXPECT_EQ(events_of("data: YHOO\ndata: +2\ndata: 10\n\n", 100), List({"|YHOO\n+2\n10"}));
  EXPECT_EQ(
      events_of(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", 100),
      List({"|first event", "|second event", "| third event"}));
  EXPECT_EQ(events_of("data\n\ndata\ndata\n\ndata:", 100), List({"|", "|\n"}));
  EXPECT_EQ(events_of("data:test\n\ndata: test\n\n", 100), List({"|test", "|test"}));
}

TEST(SseParser, EventsDoNotDependOnTheBordersOfReads) {
  const std::string bytes =
      "\xEF\xBB\xBF"
      "event: a\r\ndata: x\r\rdata:y\ndata: z\r\n\r\n: c\n:\ndata: \xE6\x9D\xB1\n\nretry: 1\n\nfoo: b\ndata\n\n";
  const List expected({"a|x", "|y\nz", "|\xE6\x9D\xB1", "|"});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(events_of(bytes, piece), expected) << piece;
}

TEST(SseParser, AnIncompleteByteOrderMarkIsContent) {
  for (std::size_t piece : {1, 2, 3, 50}) {
    EXPECT_EQ(events_of("\xEF\xBB:x\ndata: a\n\n", piece), List({"|a"}));
    EXPECT_EQ(events_of("\n\xEF\xBB\xBF"
                        "data: a\n\n",
                        piece),
              List())
        << "a mark later in the stream is part of the field's name";
  }
}

TEST(SseParser, AnEventWithinOneReadIsNotCopied) {
  const std::string bytes = ": ping\n\ndata: abc\n\n";
  SseParser parser;
  SseEvent event;
  parser.feed(bytes);
  ASSERT_TRUE(parser.next(event));
  EXPECT_EQ(event.data.data(), bytes.data() + bytes.find("abc"));
  EXPECT_FALSE(parser.next(event));
  EXPECT_EQ(parser.comment_lines(), 1u);
}

TEST(SseParser, FlushesAnUnfinishedEvent) {
  for (std::size_t piece : {1, 4, 50}) {
    EXPECT_EQ(events_of("data: [DONE]", piece, true), List({"flushed|[DONE]"}));
    EXPECT_EQ(events_of("data: a\ndata: b\n", piece, true), List({"flushed|a\nb"}));
    EXPECT_EQ(events_of("data: a\n\nda", piece, true), List({"|a"}));
  }
}

TEST(SseParser, RefusesAnEventAboveItsLimitUnderEveryCut) {
  const std::string small = "data: 12\n\n";
  const std::string big = "data: 1234567890\ndata: 1234567890\n\n";
  for (std::size_t piece = 1; piece <= small.size() + big.size(); ++piece) {
    SseParser parser(24);
    SseEvent event;
    int events = 0;
    const std::string bytes = small + big;
    for (std::size_t at = 0; at < bytes.size() && !parser.overflowed(); at += piece) {
      parser.feed(std::string_view(bytes).substr(at, piece));
      while (parser.next(event)) ++events;
    }
    EXPECT_TRUE(parser.overflowed()) << piece;
    EXPECT_EQ(events, 1) << piece;
    parser.reset();
    parser.feed(small);
    EXPECT_TRUE(parser.next(event)) << "usable again after reset";
  }
}

/// The standard's rules by the slow and obvious way: the whole text at once.
List oracle(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  List events;
  std::string data, name, line;
  bool has_data = false;
  const auto end_line = [&] {
    if (line.empty()) {
      if (has_data) events.push_back(name + "|" + data);
      data.clear(), name.clear(), has_data = false;
    } else if (line[0] != ':') {
      const std::size_t colon = line.find(':');
      std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
      if (value.starts_with(" ")) value.erase(0, 1);
      const std::string field = line.substr(0, colon);
      if (field == "data") data += (has_data ? "\n" : "") + value, has_data = true;
      if (field == "event") name = value;
    }
    line.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' || text[i] == '\n') {
      if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      end_line();
    } else {
      line += text[i];
    }
  }
  return events;
}

TEST(SseParser, AgreesWithThePlainReadingOnRandomTexts) {
  static constexpr std::string_view kParts[] = {"data", "event", ":",  " ",    "\n",   "\r",   "\r\n",
                                                "\n\n", "x",     "id", "\xEF", "\xBB", "\xBF", "data: y"};
  Rng rng(7, streams::shuffle);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto n = rng.uniform_int(0, 30); n > 0; --n) text += kParts[rng.uniform_int(0, std::size(kParts) - 1)];
    const auto piece = static_cast<std::size_t>(rng.uniform_int(1, 12));
    ASSERT_EQ(events_of(text, piece), oracle(text)) << ::testing::PrintToString(text) << " in pieces of " << piece;
  }
}

}  // namespace
}  // namespace tokenstone::http
