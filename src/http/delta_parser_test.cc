#include "http/delta_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "http/json_cursor.h"

namespace tokenstone::http {
namespace {

using Kind = StreamDelta::Kind;

TEST(DeltaParser, ReadsChatAndCompletions) {
  DeltaParser parser;
  const StreamDelta& chat = parser.parse(
      R"({"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null})");
  EXPECT_EQ(chat.kind, Kind::chunk);
  ASSERT_EQ(chat.choices.size(), 1u);
  EXPECT_EQ(chat.choices[0].text, "Hi");
  EXPECT_EQ(chat.choices[0].finish_reason, "");
  EXPECT_FALSE(chat.usage.known());
  const StreamDelta& text = parser.parse(R"({"choices":[{"text":"lo","finish_reason":"stop","index":3}]})");
  EXPECT_EQ(text.choices[0].text, "lo");
  EXPECT_EQ(text.choices[0].finish_reason, "stop");
  EXPECT_EQ(text.choices[0].index, 3);
}

TEST(DeltaParser, ReadsReasoningUnderBothNames) {
  DeltaParser parser;
  EXPECT_EQ(parser.parse(R"({"choices":[{"delta":{"reasoning_content":"a","content":null}}]})").choices[0].reasoning,
            "a");
  EXPECT_EQ(parser.parse(R"({"choices":[{"delta":{"reasoning":"b"}}]})").choices[0].reasoning, "b");
  EXPECT_EQ(parser.parse(R"({"choices":[{"delta":{"reasoning":"c","reasoning_content":"c"}}]})").choices[0].reasoning,
            "c");
}

TEST(DeltaParser, ReadsToolCalls) {
  DeltaParser parser;
  const auto& named = parser.parse(
      R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]})");
  EXPECT_TRUE(named.choices[0].tool_call);
  EXPECT_EQ(named.choices[0].tool_text, "f");
  EXPECT_EQ(parser.parse(R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a\""}}]}}]})")
                .choices[0]
                .tool_text,
            "{\"a\"");
  EXPECT_FALSE(parser.parse(R"({"choices":[{"delta":{"tool_calls":[]}}]})").choices[0].has_token());
  EXPECT_FALSE(
      parser.parse(R"({"choices":[{"delta":{"tool_calls":null,"function_call":null}}]})").choices[0].has_token());
  EXPECT_TRUE(parser.parse(R"({"choices":[{"delta":{"function_call":{"name":"g"}}}]})").choices[0].has_token());
}

TEST(DeltaParser, ReadsUsageWhereverItStands) {
  DeltaParser parser;
  const auto& apart = parser.parse(
      R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":8}}})");
  EXPECT_EQ(apart.kind, Kind::chunk);
  EXPECT_EQ(apart.usage.prompt_tokens, 9);
  EXPECT_EQ(apart.usage.completion_tokens, 4);
  EXPECT_EQ(apart.usage.cached_tokens, 8);
  EXPECT_EQ(parser.parse(R"({"choices":[{"delta":{},"usage":{"completion_tokens":2}}]})").usage.completion_tokens, 2);
  EXPECT_EQ(parser.parse(R"({"usage":{"completion_tokens":3.0,"prompt_tokens":null}})").usage.completion_tokens, 3);
}

TEST(DeltaParser, KnowsErrorsInAllTheirShapes) {
  DeltaParser parser;
  const auto& object = parser.parse(R"({"error":{"message":"too long","type":"invalid_request_error","code":400}})");
  EXPECT_EQ(object.kind, Kind::error);
  EXPECT_EQ(object.error_message, "too long");
  EXPECT_EQ(object.error_code, 400);
  EXPECT_EQ(parser.parse(R"({"error":"bad"})").error_message, "bad");
  EXPECT_EQ(parser.parse(R"({"object":"error","message":"old","code":500})").error_code, 500);
  EXPECT_EQ(parser.parse(R"({"error":{"code":"rate_limit"},"choices":[]})").kind, Kind::error);
  EXPECT_EQ(parser.parse(R"({"choices":[],"error":null})").kind, Kind::chunk);
  EXPECT_EQ(parser.parse(R"({"choices":[],"error":""})").kind, Kind::chunk);
}

TEST(DeltaParser, ForeignEventsAndWrongTypesAreIgnored) {
  DeltaParser parser;
  EXPECT_EQ(parser.parse(R"({"type":"heartbeat"})").kind, Kind::foreign);
  EXPECT_EQ(parser.parse("[1,2]").kind, Kind::foreign);
  EXPECT_EQ(parser.parse(R"({"choices":null})").kind, Kind::foreign);
  const auto& odd =
      parser.parse(R"({"choices":[7,{"index":"x","delta":[],"text":5,"finish_reason":{}}],"usage":"none"})");
  EXPECT_EQ(odd.kind, Kind::chunk);
  ASSERT_EQ(odd.choices.size(), 1u);
  EXPECT_FALSE(odd.choices[0].has_token());
}

TEST(DeltaParser, EscapesAreUndoneAndLoneSurrogatesReplaced) {
  DeltaParser parser;
  const auto text = [&](std::string_view inside) {
    return std::string(parser.parse("{\"choices\":[{\"text\":\"" + std::string(inside) + "\"}]}").choices[0].text);
  };
  EXPECT_EQ(text(R"(\ud83d\ude80 \u00e9\n\"q\"\\\/)"), "\xF0\x9F\x9A\x80 \xC3\xA9\n\"q\"\\/");
  EXPECT_EQ(text(R"(a\u0000b)"), std::string("a\0b", 3));
  EXPECT_EQ(text(R"(\ud83d)"), "\xEF\xBF\xBD");
  EXPECT_EQ(text(R"(\ude80x)"), "\xEF\xBF\xBDx");
  EXPECT_EQ(text(R"(\ud83d\n)"), "\xEF\xBF\xBD\n");
  EXPECT_EQ(text(R"(\ud83d\u0041)"),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(text(R"(\ud83d\ud83d\ude80)"), "\xEF\xBF\xBD\xF0\x9F\x9A\x80");
}

TEST(DeltaParser, BrokenTextsAreMalformed) {
  DeltaParser parser;
  for (const char* bad : {"", "{", "{\"a\":1", "{\"a\":1}}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[1,]", "\"x",
                          "{\"a\":\"\n\"}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":-}", "{\"a\":1e}", "{\"a\":tru}",
                          "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "hello", "{} x"}) {
    EXPECT_EQ(parser.parse(bad).kind, Kind::malformed) << bad;
  }
  EXPECT_EQ(parser.parse(std::string(1000, '[') + std::string(1000, ']')).kind, Kind::malformed)
      << "deeper than the limit";
  EXPECT_EQ(parser.parse(R"({"logprobs":[NaN,-Infinity,Infinity]})").kind, Kind::foreign) << "Python's numbers";
}

/// All strings of a document in order, keys too.
bool strings_of(JsonCursor& json, std::string& all) {
  switch (json.peek()) {
    case '"': {
      std::string_view text;
      if (!json.string(text)) return false;
      all.append(text).append("|");
      return true;
    }
    case '{':
      return json.object([&](std::string_view key) {
        all.append(key).append(":");
        return strings_of(json, all);
      });
    case '[':
      return json.array([&] { return strings_of(json, all); });
    default:
      return json.skip();
  }
}

void strings_of(const nlohmann::ordered_json& json, std::string& all) {
  if (json.is_string()) all += json.get<std::string>() + "|";
  for (const auto& item : json.items()) {
    if (json.is_object()) all += item.key() + ":";
    if (json.is_structured()) strings_of(item.value(), all);
  }
}

TEST(JsonCursor, AgreesWithTheLibraryOnMutatedTexts) {
  const std::string seed =
      R"({"id":"c\u00e9","n":[0,-1.5e+3,12],"choices":[{"index":0,"delta":{"content":"a\ud83d\ude80\n","x":null}}],"t":true,"f":false,"e":{},"l":[]})";
  static constexpr std::string_view kBytes = "{}[]\",:\\u0139eE+-.ntfd8a \n";
  Rng rng(11, streams::shuffle);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (auto n = rng.uniform_int(0, 3); n > 0; --n) {
      const auto at = static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(text.size()) - 1));
      const char byte = kBytes[static_cast<std::size_t>(rng.uniform_int(0, kBytes.size() - 1))];
      const auto action = rng.uniform_int(0, 2);
      if (action == 0) text[at] = byte;
      if (action == 1) text.insert(at, 1, byte);
      if (action == 2) text.erase(at, 1);
    }
    const auto library = nlohmann::ordered_json::parse(text, nullptr, false);
    std::string scratch(text.size(), '\0');
    std::string got;
    JsonCursor cursor(text, scratch.data());
    const bool whole = strings_of(cursor, got) && cursor.at_end();
    if (library.is_discarded() && whole) {
      // The only texts that we take and the library does not: a lone surrogate, which it calls an error, and numbers
      // too large.
      EXPECT_TRUE(got.find("\xEF\xBF\xBD") != std::string::npos || text.find('e') != std::string::npos) << text;
      continue;
    }
    ASSERT_EQ(whole, !library.is_discarded()) << text;
    if (!whole) continue;
    ++accepted;
    std::string expected;
    strings_of(library, expected);
    // A key given twice is one member for the library; the order of the others is the same.
    if (std::count(got.begin(), got.end(), ':') == std::count(expected.begin(), expected.end(), ':')) {
      ASSERT_EQ(got, expected) << text;
    }
  }
  EXPECT_GT(accepted, 2000);
}

TEST(DeltaParser, KeepsItsBuffersBetweenEvents) {
  DeltaParser parser;
  const std::string event = R"({"choices":[{"index":0,"text":"a\nb"}]})";
  const char* first = parser.parse(event).choices[0].text.data();
  EXPECT_EQ(parser.parse(event).choices[0].text.data(), first);
}

}  // namespace
}  // namespace tokenstone::http
