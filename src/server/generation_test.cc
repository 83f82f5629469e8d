// What /v1/completions and /v1/chat/completions answer, over real sockets.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/test_rig.h"

namespace tokenstone::server::test {
namespace {

using nlohmann::json;

json completion(Client& client, json body) {
  const Answer answer = client.post("/v1/completions", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body);
}

std::string joined_text(const std::vector<std::string>& events, std::size_t index = 0) {
  std::string text;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json parsed = json::parse(event);
    for (const auto& choice : parsed.at("choices"))
      if (choice.at("index") == index)
        text += choice.contains("text") ? choice["text"].get<std::string>() : choice["delta"].value("content", "");
  }
  return text;
}

TEST(Completions, AnswerHasVllmsShape) {
  Rig rig;
  Client client(rig.port());
  const Answer answer =
      client.post("/v1/completions", R"({"model":"tiny","prompt":"abc","max_tokens":3,"temperature":0})",
                  "X-Request-Id: req-1\r\n");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json body = json::parse(answer.body);
  const std::string text = body["choices"][0]["text"];
  EXPECT_EQ(text.size(), 3u);
  const std::string created = std::to_string(body["created"].get<std::int64_t>());
  EXPECT_EQ(answer.body,
            R"({"id":"cmpl-req-1","object":"text_completion","created":)" + created +
                R"(,"model":"tiny","choices":[{"index":0,"text":")" + text +
                R"(","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":3,)"
                R"("total_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(Completions, StreamHasVllmsBytes) {
  Rig rig;
  rig.executor().set_script({'x', '"', ByteTokenizer::kEnd});
  Client client(rig.port());
  const Answer answer = client.post(
      "/v1/completions",
      R"({"model":"tiny","prompt":"abc","max_tokens":9,"temperature":0,"stream":true,"stream_options":{"include_usage":true}})",
      "X-Request-Id: r\r\n");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-type"), "text/event-stream; charset=utf-8");
  const auto events = answer.events();
  ASSERT_EQ(events.size(), 5u);
  const std::string created = std::to_string(json::parse(events[0])["created"].get<std::int64_t>());
  const std::string head =
      R"({"id":"cmpl-r","object":"text_completion","created":)" + created + R"(,"model":"tiny","choices":[)";
  EXPECT_EQ(events[0],
            head + R"({"index":0,"text":"x","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null})");
  EXPECT_EQ(events[1],
            head + R"({"index":0,"text":"\"","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null})");
  EXPECT_EQ(events[2],
            head + R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":null})");
  EXPECT_EQ(
      events[3],
      head +
          R"(],"usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}})");
  EXPECT_EQ(events[4], "[DONE]");
}

TEST(Completions, StreamedTextEqualsTextUnderManyAtOnce) {
  Rig rig;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&rig, i] {
      Client client(rig.port());
      for (int round = 0; round < 4; ++round) {
        json body{{"prompt", "p" + std::to_string(i * 7 + round)}, {"max_tokens", 40 + i}, {"temperature", 0}};
        if (round % 2 == 1) body["stop"] = {"q", "ab", "zz"};
        const json whole = completion(client, body);
        body["stream"] = true;
        const auto events = client.post("/v1/completions", body.dump()).events();
        EXPECT_EQ(joined_text(events), whole["choices"][0]["text"]);
        EXPECT_EQ(json::parse(events.at(events.size() - 2))["choices"][0]["finish_reason"],
                  whole["choices"][0]["finish_reason"]);
      }
    });
  for (auto& thread : clients) thread.join();
}

TEST(Completions, ListsOfPromptsKeepTheirPlaces) {
  Rig rig;
  Client client(rig.port());
  const json one = completion(client, {{"prompt", "one"}, {"max_tokens", 5}, {"temperature", 0}});
  const json two = completion(client, {{"prompt", "two!"}, {"max_tokens", 5}, {"temperature", 0}});
  const json both = completion(client, {{"prompt", {"one", "two!"}}, {"max_tokens", 5}, {"temperature", 0}});
  ASSERT_EQ(both["choices"].size(), 2u);
  EXPECT_EQ(both["choices"][0]["text"], one["choices"][0]["text"]);
  EXPECT_EQ(both["choices"][1]["text"], two["choices"][0]["text"]);
  EXPECT_EQ(both["choices"][1]["index"], 1);
  EXPECT_EQ(both["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(both["usage"]["completion_tokens"], 10);
  const json ids = completion(client, {{"prompt", json::array({json::array({'o', 'n', 'e'}), json::array({'t'})})},
                                       {"max_tokens", 5},
                                       {"temperature", 0}});
  EXPECT_EQ(ids["choices"][0]["text"], one["choices"][0]["text"]);
  const auto streamed =
      client
          .post("/v1/completions",
                json{{"prompt", {"one", "two!"}}, {"max_tokens", 5}, {"temperature", 0}, {"stream", true}}.dump())
          .events();
  EXPECT_EQ(joined_text(streamed, 0), one["choices"][0]["text"]);
  EXPECT_EQ(joined_text(streamed, 1), two["choices"][0]["text"]);
}

TEST(Completions, EchoAndZeroTokens) {
  Rig rig;
  Client client(rig.port());
  const json zero = completion(client, {{"prompt", "abc"}, {"max_tokens", 0}});
  EXPECT_EQ(zero["choices"][0]["text"], "");
  EXPECT_EQ(zero["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(zero["usage"]["completion_tokens"], 0);
  EXPECT_EQ(completion(client, {{"prompt", "abc"}, {"max_tokens", 0}, {"echo", true}})["choices"][0]["text"], "abc");
  const std::string text = completion(
      client, {{"prompt", "abc"}, {"max_tokens", 4}, {"echo", true}, {"temperature", 0}})["choices"][0]["text"];
  EXPECT_EQ(text.substr(0, 3), "abc");
  EXPECT_EQ(text.size(), 7u);
  const auto events =
      client
          .post("/v1/completions", R"({"prompt":[97,98,99],"max_tokens":4,"echo":true,"temperature":0,"stream":true})")
          .events();
  EXPECT_EQ(joined_text(events), text);
}

TEST(Completions, StopStringsAreNeverSentAndSplitCharactersAreHeldBack) {
  Rig rig;
  rig.executor().set_script({'o', 'k', ' ', 'E', 'N', 'D', 'x', 'y'});
  Client client(rig.port());
  json body{{"prompt", "abc"}, {"max_tokens", 8}, {"temperature", 0}, {"stop", "END"}};
  const json stopped = completion(client, body);
  EXPECT_EQ(stopped["choices"][0]["text"], "ok ");
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stopped["choices"][0]["stop_reason"], "END");
  body["stream"] = true;
  EXPECT_EQ(joined_text(client.post("/v1/completions", body.dump()).events()), "ok ");
  body["include_stop_str_in_output"] = true;
  EXPECT_EQ(joined_text(client.post("/v1/completions", body.dump()).events()), "ok END");
  rig.executor().set_script(
      {0xF0, 0x9F, 0x98, 0x80, 0xE6, 0xAD, '\''});  // an emoji; then a character that is cut short
  const auto events =
      client
          .post("/v1/completions",
                R"({"prompt":"a","max_tokens":7,"stream":true,"stream_options":{"continuous_usage_stats":true}})")
          .events();
  EXPECT_EQ(joined_text(events), "\xF0\x9F\x98\x80\xEF\xBF\xBD'");
  ASSERT_EQ(events.size(), 8u);  // one per token, though three of the first four are empty
  EXPECT_EQ(json::parse(events[2])["usage"]["completion_tokens"], 3);
}

TEST(Completions, UsageNamesCachedTokens) {
  Rig rig;
  Client client(rig.port());
  const std::string prompt(40, 'p');
  EXPECT_EQ(completion(client, {{"prompt", prompt}})["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(completion(client, {{"prompt", prompt}})["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
  EXPECT_EQ(
      completion(client, {{"prompt", prompt}, {"cache_salt", "s"}})["usage"]["prompt_tokens_details"]["cached_tokens"],
      0);
  EXPECT_EQ(client.post("/reset_prefix_cache", "").status, 200);
  EXPECT_EQ(completion(client, {{"prompt", prompt}})["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST(Chat, StreamHasRoleDeltasFinishUsageAndDone) {
  Rig rig;
  rig.executor().set_script({'h', 'i', ByteTokenizer::kEnd});
  Client client(rig.port());
  const Answer answer = client.post(
      "/v1/chat/completions",
      R"({"model":"alias","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"stream":true,)"
      R"("stream_options":{"include_usage":true}})",
      "X-Request-Id: r\r\n");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto events = answer.events();
  ASSERT_EQ(events.size(), 6u);
  const std::string created = std::to_string(json::parse(events[0])["created"].get<std::int64_t>());
  const std::string head =
      R"({"id":"chatcmpl-r","object":"chat.completion.chunk","created":)" + created + R"(,"model":"tiny","choices":[)";
  EXPECT_EQ(events[0],
            head + R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(events[1], head + R"({"index":0,"delta":{"content":"h"},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(events[3],
            head + R"({"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}]})");
  EXPECT_EQ(json::parse(events[4])["choices"], json::array());
  EXPECT_EQ(json::parse(events[4])["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events[5], "[DONE]");
}

TEST(Chat, WithoutALimitTheAnswerMayFillTheContext) {
  Rig rig({.max_model_len = 128});
  Client client(rig.port());
  const Answer answer = client.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json body = json::parse(answer.body);
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["usage"]["total_tokens"], 128);
  const Answer few =
      client.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":2})");
  EXPECT_EQ(json::parse(few.body)["usage"]["completion_tokens"], 2);
}

TEST(Sampling, FieldsAtNeutralValuesPass) {
  Rig rig;
  Client client(rig.port());
  const json body = completion(
      client, json::parse(R"({"model":"tiny","prompt":"a","max_tokens":2,"n":1,"best_of":1,"logprobs":null,"echo":false,
      "suffix":null,"user":"me","metadata":{"a":"b"},"store":false,"stream":false,"presence_penalty":0,"frequency_penalty":0.0,
      "repetition_penalty":1.0,"logit_bias":{},"stop":null,"seed":-5,"top_k":-1,"min_p":0,"temperature":1,"top_p":1,"response_format":{"type":"text"},
      "tools":[],"guided_json":null,"ignore_eos":true,"min_tokens":1,"stop_token_ids":[],"skip_special_tokens":true,"priority":0,"stream_options":null})"));
  EXPECT_EQ(body["usage"]["completion_tokens"], 2);
}

TEST(Errors, NameTheFieldAndTheRightStatus) {
  Rig rig({.max_model_len = 100});
  Client client(rig.port());
  struct Case {
    const char* body;
    int status;
    const char* param;
    std::vector<const char*> says;
  };
  const std::vector<Case> cases = {
      {"{", 400, nullptr, {"JSON"}},
      {"[1]", 400, nullptr, {"object"}},
      {R"({"prompt":"a","model":"gpt-5"})", 404, "model", {"gpt-5", "tiny"}},
      {R"({"model":"tiny"})", 400, "prompt", {"prompt"}},
      {R"({"prompt":""})", 400, "prompt", {"no tokens"}},
      {R"({"prompt":[""]})", 400, "prompt", {"no tokens"}},
      {R"({"prompt":[]})", 400, "prompt", {"empty"}},
      {R"({"prompt":[[]]})", 400, "prompt", {"no tokens"}},
      {R"({"prompt":[1,"a"]})", 400, "prompt", {"token ids"}},
      {R"({"prompt":[5,300]})", 400, "prompt", {"300", "257"}},
      {R"({"prompt":[-1]})", 400, "prompt", {"-1"}},
      {R"({"prompt":7})", 400, "prompt", {"a number"}},
      {R"({"prompt":"a","n":512})", 400, "n", {"512"}},
      {R"({"prompt":"a","logprobs":1})", 400, "logprobs", {"logprobs"}},
      {R"({"prompt":"a","presence_penalty":0.5})", 400, "presence_penalty", {"0.5"}},
      {R"({"prompt":"a","tools":[{"type":"function"}]})", 400, "tools", {"tool"}},
      {R"({"prompt":"a","guided_json":{"a":1}})", 400, "guided_json", {"constrained"}},
      {R"({"prompt":"a","suffix":"b"})", 400, "suffix", {"suffix"}},
      {R"({"prompt":"a","max_tokenz":5})", 400, "max_tokenz", {"max_tokens"}},
      {R"({"prompt":"a","max_tokens":-1})", 400, "max_tokens", {"-1"}},
      {R"({"prompt":"a","max_tokens":"5"})", 400, "max_tokens", {"a string"}},
      {R"({"prompt":"a","max_tokens":1.5})", 400, "max_tokens", {"integer"}},
      {R"({"prompt":"a","temperature":-1})", 400, "temperature", {"-1"}},
      {R"({"prompt":"a","top_p":0})", 400, "top_p", {"0"}},
      {R"({"prompt":"a","top_p":2})", 400, "top_p", {"2"}},
      {R"({"prompt":"a","stop":[""]})", 400, "stop", {"stop"}},
      {R"({"prompt":"a","stream":1})", 400, "stream", {"true or false"}},
      {R"({"prompt":"a","stream_options":{"include_usage":true}})", 400, "stream_options", {"stream"}},
      {R"({"prompt":"a","min_tokens":9,"max_tokens":4})", 400, "min_tokens", {"9", "4"}},
      {R"({"prompt":"aaaaaaaaaa","max_tokens":95})", 400, "prompt", {"100", "105"}},
      {R"({"prompt":"aaaaaaaaaa","max_tokens":95,"stream":true})", 400, "prompt", {"100", "105"}},
  };
  for (const Case& test : cases) {
    const Answer answer = client.post("/v1/completions", test.body);
    EXPECT_EQ(answer.status, test.status) << test.body;
    const json body = json::parse(answer.body);
    const std::string message = body.at("error").at("message");
    EXPECT_EQ(body["error"]["code"], test.status) << test.body;
    EXPECT_EQ(body["error"]["type"], test.status == 404 ? "NotFoundError" : "BadRequestError");
    EXPECT_EQ(body["error"]["param"], test.param == nullptr ? json(nullptr) : json(test.param)) << test.body;
    for (const char* part : test.says)
      EXPECT_NE(message.find(part), std::string::npos) << test.body << " -> " << message;
  }
  const std::string long_prompt(1000, 'a');
  const Answer too_long = client.post("/v1/completions", json{{"prompt", long_prompt}, {"stream", true}}.dump());
  EXPECT_EQ(too_long.status, 400);
  EXPECT_NE(too_long.body.find("1000"), std::string::npos);
  EXPECT_EQ(completion(client, {{"prompt", "still here"}})["choices"].size(), 1u);
}

TEST(Errors, ChatRefusesWhatIsNoText) {
  Rig rig;
  Client client(rig.port());
  for (const char* body : {R"({"messages":[]})", R"({"messages":"hi"})", R"({})", R"({"messages":[{"content":"x"}]})",
                           R"({"messages":[{"role":"user","content":5}]})",
                           R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})",
                           R"({"messages":[{"role":"user","content":"x","tool_calls":[{}]}]})",
                           R"({"messages":[{"role":"user","content":"x"}],"echo":true})",
                           R"({"messages":[{"role":"user","content":"x"}],"prompt":"x"})"}) {
    const Answer answer = client.post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_TRUE(json::parse(answer.body).at("error").contains("message"));
  }
}

}  // namespace
}  // namespace tokenstone::server::test
