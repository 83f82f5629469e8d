// The server as a server: connections, limits, clients that go away, queue, drain, metrics.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "server/tcp.h"
#include "server/test_rig.h"

namespace tokenstone::server::test {
namespace {

using nlohmann::json;

constexpr const char* kLong = R"({"prompt":"abc","max_tokens":3000,"temperature":0,"stream":true})";
constexpr const char* kShort = R"({"prompt":"abc","max_tokens":3,"temperature":0})";

bool engine_is_empty(Rig& rig) {
  const auto stats = rig.engine_stats();
  return stats.running == 0 && stats.waiting == 0 && stats.blocks_active == 0;
}

TEST(HttpServer, AnswersSmallEndpoints) {
  Rig rig;
  Client client(rig.port());
  EXPECT_EQ(client.get("/health").status, 200);
  const json version = json::parse(client.get("/version").body);
  EXPECT_EQ(version["version"], "0.0.1");
  EXPECT_EQ(version["dtype"], "bfloat16");
  const json models = json::parse(client.get("/v1/models").body);
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], 4096);
  EXPECT_EQ(models["data"][0]["root"], "/models/tiny");
  EXPECT_EQ(models["data"][1]["id"], "alias");
  const json tokens =
      json::parse(client.post("/tokenize", R"({"model":"tiny","prompt":"ab","return_token_strs":true})").body);
  EXPECT_EQ(tokens.dump(), R"({"count":2,"max_model_len":4096,"token_strs":["a","b"],"tokens":[97,98]})");
  const json chat = json::parse(client.post("/tokenize", R"({"messages":[{"role":"user","content":"ab"}]})").body);
  EXPECT_GT(chat["count"], 2);
  EXPECT_EQ(client.post("/detokenize", R"({"tokens":[97,98]})").body, R"({"prompt":"ab"})");
  EXPECT_EQ(client.post("/detokenize", R"({"tokens":[300]})").status, 400);
  EXPECT_EQ(client.post("/tokenize", "{}").status, 400);
}

TEST(HttpServer, UnknownPathsAndMethodsGetErrorObjects) {
  Rig rig;
  Client client(rig.port());
  const Answer missing = client.get("/v1/embeddings");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(json::parse(missing.body)["error"]["type"], "NotFoundError");
  const Answer method = client.get("/v1/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.header("allow"), "POST");
  client.send("HEAD /health HTTP/1.1\r\n\r\nGET /nothing?x HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive().status, 404);
}

TEST(HttpServer, AsksForTheKey) {
  RigOptions options;
  options.server.api_key = "secret";
  Rig rig(options);
  Client client(rig.port());
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(client.post("/v1/completions", kShort, "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(client.post("/v1/completions", kShort, "Authorization: Bearer secret2\r\n").status, 401);
  EXPECT_EQ(client.post("/v1/completions", kShort, "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST(HttpServer, BadBytesGetAnAnswerAndTheEndOthersGoOn) {
  Rig rig;
  Client good(rig.port());
  for (const std::string_view bytes :
       {"\x16\x03\x01\x00\xA5 hello\r\n\r\n", "GET / HTTP/9\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: z\r\n\r\n"}) {
    Client bad(rig.port());
    bad.send(bytes);
    EXPECT_EQ(bad.receive().status, 400);
    EXPECT_TRUE(bad.at_end());
  }
  EXPECT_EQ(good.post("/v1/completions", kShort).status, 200);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  Rig rig;
  Client client(rig.port());
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    bytes += post_bytes("/v1/completions", kShort);
    bytes += "GET /health HTTP/1.1\r\n\r\n";
    bytes += post_bytes("/detokenize", R"({"tokens":[)" + std::to_string(97 + i % 26) + "]}");
  }
  client.send(bytes);
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(client.receive().body.find("text_completion"), std::string::npos);
    EXPECT_EQ(client.receive().body, "");
    EXPECT_EQ(client.receive().body, std::string(R"({"prompt":")") + static_cast<char>('a' + i % 26) + "\"}");
  }
}

TEST(HttpServer, SlowBodyAndContinue) {
  Rig rig;
  Client client(rig.port());
  const std::string body = kShort;
  client.send("POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_TRUE(client.receive_until("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_EQ(client.receive().status, 100);
  for (const char c : body) ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  EXPECT_EQ(client.receive().status, 200);
}

TEST(HttpServer, LargeBodies) {
  RigOptions options;
  options.server.max_body_bytes = 100'000;
  Rig rig(options);
  Client client(rig.port());
  const Answer fits = client.post("/tokenize", json{{"prompt", std::string(90'000, 'a')}}.dump());
  EXPECT_EQ(fits.status, 200);
  EXPECT_EQ(json::parse(fits.body)["count"], 90'000);
  client.send(post_bytes("/tokenize", json{{"prompt", std::string(5'000'000, 'a')}}.dump()));
  const Answer too_large = client.receive();  // though the client went on sending
  EXPECT_EQ(too_large.status, 413);
  EXPECT_NE(too_large.body.find("100000"), std::string::npos);
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, Http10StreamsEndWithTheConnection) {
  Rig rig;
  Client client(rig.port());
  const std::string body = R"({"prompt":"abc","max_tokens":3,"temperature":0,"stream":true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const Answer answer = client.receive();
  EXPECT_EQ(answer.header("transfer-encoding"), std::nullopt);
  ASSERT_EQ(answer.events().size(), 4u);
  EXPECT_EQ(answer.events().back(), "[DONE]");
}

TEST(HttpServer, PortInUseSaysWhatToDo) {
  Rig rig;
  const auto second = listen_tcp("127.0.0.1", rig.port());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  EXPECT_NE(second.error().message.find("--port"), std::string::npos);
  EXPECT_FALSE(listen_tcp("no such host", 0));
}

/// After the server has seen the end of the connection, one more step is let through: then nothing may be left.
void expect_freed_within_one_step(const char* body, bool wait_for_token, const std::string& aborted) {
  Rig rig;
  Client other(rig.port());
  rig.executor().hold();
  {
    Client client(rig.port());
    client.send(post_bytes("/v1/completions", body));
    if (wait_for_token) {
      rig.executor().permit(3);
      ASSERT_TRUE(client.receive_until("\"index\":0"));
    }
    rig.executor().wait_for_step(wait_for_token ? 3 : 0);
    client.close();
  }
  ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == 0; }));
  const auto begun = rig.executor().steps_begun();
  rig.executor().permit(1);
  ASSERT_TRUE(Rig::eventually([&] { return engine_is_empty(rig); }));
  EXPECT_EQ(rig.executor().steps_begun(), begun);
  rig.executor().release();
  EXPECT_EQ(other.post("/v1/completions", kShort).status, 200);
  const std::string page = other.get("/metrics").body;
  EXPECT_NE(page.find("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"tiny\"} " +
                      aborted + ".0"),
            std::string::npos);
}

TEST(ClientsThatGo, WhileStreaming) { expect_freed_within_one_step(kLong, true, "1"); }
TEST(ClientsThatGo, WhileWaitingForAWholeAnswer) {
  expect_freed_within_one_step(R"({"prompt":"abc","max_tokens":3000,"temperature":0})", false, "1");
}
TEST(ClientsThatGo, WithSeveralPrompts) {
  expect_freed_within_one_step(R"({"prompt":["abc","defg","h"],"max_tokens":3000,"stream":true})", true, "3");
}

TEST(ClientsThatGo, QueuedRequestsAreDroppedWithoutPrefill) {
  Rig rig({.max_num_seqs = 1});
  rig.executor().hold();
  Client running(rig.port());
  running.send(post_bytes("/v1/completions", R"({"prompt":"abc","max_tokens":5,"temperature":0})"));
  rig.executor().wait_for_step(0);
  Client queued(rig.port());
  queued.send(post_bytes("/v1/completions", R"({"prompt":"a long prompt that must not run","max_tokens":5})"));
  ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == 2; }));
  queued.close();
  ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == 1; }));
  rig.executor().release();
  EXPECT_EQ(running.receive().status, 200);
  ASSERT_TRUE(Rig::eventually([&] { return engine_is_empty(rig); }));
  EXPECT_EQ(rig.engine_stats().prompt_tokens, 3u);
}

TEST(ClientsThatGo, SlowReadersAreCutOff) {
  RigOptions options{.max_model_len = 60'000};
  options.server.max_unread_stream_bytes = 64 << 10;
  Rig rig(options);
  Client client(rig.port(), 4096);
  client.send(post_bytes("/v1/completions", R"({"prompt":"abc","max_tokens":50000,"temperature":0,"stream":true})"));
  ASSERT_TRUE(client.receive_until("\"index\":0"));
  EXPECT_TRUE(Rig::eventually([&] { return rig.counts().connections == 0; }));
  EXPECT_TRUE(Rig::eventually([&] { return engine_is_empty(rig); }));
  EXPECT_LT(rig.engine_stats().generation_tokens, 50'000u);
}

TEST(ClientsThatGo, ManyAtRandomPlaces) {
  Rig rig({.max_num_seqs = 16, .num_blocks = 512});
  std::atomic<int> whole = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 64; ++i)
    clients.emplace_back([&rig, &whole, i] {
      std::uint64_t state = static_cast<std::uint64_t>(i) * 2654435761u + 1;
      const auto random = [&state](std::uint64_t below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (state >> 33) % below;
      };
      for (int round = 0; round < 6; ++round) {
        Client client(rig.port());
        const json body{
            {"prompt", std::string(1 + random(200), 'q')}, {"max_tokens", 1 + random(60)}, {"stream", random(2) == 0}};
        const std::string bytes = post_bytes("/v1/completions", body.dump());
        switch (random(4)) {
          case 0:
            client.send(std::string_view(bytes).substr(0, random(bytes.size())));
            break;
          case 1:
            client.send(bytes);
            break;
          case 2:
            client.send(bytes);
            client.receive_until("HTTP/1.1 200");
            break;
          default:
            client.send(bytes);
            if (client.receive().complete) ++whole;
        }
      }
    });
  for (auto& thread : clients) thread.join();
  EXPECT_TRUE(Rig::eventually([&] { return rig.counts().connections == 0 && rig.counts().generations == 0; }));
  EXPECT_TRUE(Rig::eventually([&] { return engine_is_empty(rig); }));
  EXPECT_GT(whole, 0);
  Client after(rig.port());
  EXPECT_EQ(after.post("/v1/completions", kShort).status, 200);
}

TEST(Queue, AboveTheLimitIs429) {
  RigOptions options{.max_num_seqs = 1};
  options.server.max_queue = 2;
  Rig rig(options);
  rig.executor().hold();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<Client>(rig.port()));
    clients.back()->send(post_bytes("/v1/completions", kShort));
    ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == static_cast<std::size_t>(i) + 1; }));
    if (i == 0) rig.executor().wait_for_step(0);
  }
  rig.executor().release();
  for (int i = 0; i < 6; ++i) {
    const Answer answer = clients[static_cast<std::size_t>(i)]->receive();
    EXPECT_EQ(answer.status, i < 3 ? 200 : 429) << i;
    if (i < 3) continue;
    EXPECT_EQ(json::parse(answer.body)["error"]["code"], 429);
    EXPECT_EQ(answer.header("retry-after"), "1");
  }
  EXPECT_EQ(clients[5]->post("/v1/completions", kShort).status, 200);
}

TEST(Drain, FinishesWhatRunsAndTakesNothingNew) {
  Rig rig;
  rig.executor().hold();
  Client streaming(rig.port()), waiting(rig.port()), idle(rig.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  streaming.send(post_bytes("/v1/completions", R"({"prompt":"abc","max_tokens":30,"temperature":0,"stream":true})"));
  waiting.send(post_bytes("/v1/completions", kShort));
  ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == 2; }));
  std::promise<void> drained;
  rig.on_io([&] { rig.server().drain([&] { drained.set_value(); }); });
  EXPECT_TRUE(idle.at_end());
  Client late(rig.port());
  EXPECT_EQ(late.get("/health").status, 0);
  rig.executor().release();
  const Answer stream = streaming.receive();
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.events().back(), "[DONE]");
  EXPECT_EQ(waiting.receive().status, 200);
  EXPECT_TRUE(streaming.at_end());
  drained.get_future().wait();
}

TEST(Drain, AnIdleServerIsDoneAtOnceAndStopCutsTheRest) {
  Rig rig;
  std::promise<void> drained;
  rig.on_io([&] { rig.server().drain([&] { drained.set_value(); }); });
  drained.get_future().wait();
  Rig busy;
  busy.executor().hold();
  Client client(busy.port());
  client.send(post_bytes("/v1/completions", kLong));
  busy.executor().wait_for_step(0);
  busy.on_io([&] { busy.server().stop(); });
  EXPECT_EQ(busy.counts().connections, 0u);
  busy.executor().release();
  EXPECT_TRUE(Rig::eventually([&] { return engine_is_empty(busy); }));
}

TEST(Idle, SilentConnectionsAreClosed) {
  RigOptions options;
  options.server.idle_timeout = 0;
  Rig rig(options);
  Client silent(rig.port()), half(rig.port());
  half.send("POST /v1/completions HTTP/1.1\r\nContent-Le");
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(half.at_end());
}

/// name{labels} -> value of every sample; also checks that HELP and TYPE come first and no sample comes twice.
std::map<std::string, double> parse_page(const std::string& page) {
  std::map<std::string, double> samples;
  std::string family;
  for (const std::string_view line : split(page, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("# TYPE ")) family = std::string(split(line, ' ')[2]);
    if (line.starts_with("#")) continue;
    const auto space = line.rfind(' ');
    EXPECT_TRUE(line.starts_with(family)) << line;
    const auto value = parse_double(line.substr(space + 1));
    EXPECT_TRUE(value.has_value()) << line;
    EXPECT_TRUE(samples.emplace(line.substr(0, space), value.value_or(0)).second) << line;
  }
  return samples;
}

TEST(Metrics, PageAddsUp) {
  Rig rig;
  Client client(rig.port());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
  const Answer answer = client.get("/metrics");
  EXPECT_EQ(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto samples = parse_page(answer.body);
  const auto value = [&](const std::string& name, const std::string& labels = "engine=\"0\",model_name=\"tiny\"") {
    const auto found = samples.find(name + "{" + labels + "}");
    EXPECT_NE(found, samples.end()) << name;
    return found == samples.end() ? -1.0 : found->second;
  };
  EXPECT_EQ(value("vllm:prompt_tokens_total"), 15);
  EXPECT_EQ(value("vllm:generation_tokens_total"), 15);
  EXPECT_EQ(value("vllm:num_requests_running"), 0);
  EXPECT_EQ(value("vllm:num_requests_waiting"), 0);
  EXPECT_EQ(value("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(value("vllm:num_preemptions_total"), 0);
  EXPECT_GE(value("vllm:prefix_cache_queries_total"), value("vllm:prefix_cache_hits_total"));
  EXPECT_EQ(value("vllm:request_success_total", "engine=\"0\",finished_reason=\"length\",model_name=\"tiny\""), 5);
  EXPECT_EQ(value("vllm:time_to_first_token_seconds_count"), 5);
  EXPECT_EQ(value("vllm:inter_token_latency_seconds_count"), 10);
  EXPECT_EQ(value("vllm:time_per_output_token_seconds_count"), 10);
  for (const char* name : {"e2e_request_latency_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
                           "request_decode_time_seconds", "request_inference_time_seconds", "request_prompt_tokens",
                           "request_generation_tokens"})
    EXPECT_EQ(value(std::string("vllm:") + name + "_count"), 5) << name;
  EXPECT_EQ(value("vllm:request_prompt_tokens_sum"), 15);
  EXPECT_EQ(value("vllm:request_prompt_tokens_bucket", "engine=\"0\",model_name=\"tiny\",le=\"2.0\""), 0);
  EXPECT_EQ(value("vllm:request_prompt_tokens_bucket", "engine=\"0\",model_name=\"tiny\",le=\"5.0\""), 5);
  EXPECT_EQ(value("vllm:time_to_first_token_seconds_bucket", "engine=\"0\",model_name=\"tiny\",le=\"+Inf\""), 5);
  EXPECT_EQ(
      value(
          "vllm:cache_config_info",
          "block_size=\"16\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",num_gpu_blocks=\"4096\""),
      1);
}

TEST(Metrics, ShowsRunningAndWaitingRequests) {
  Rig rig({.max_num_seqs = 1});
  rig.executor().hold();
  Client first(rig.port()), second(rig.port()), watcher(rig.port());
  first.send(post_bytes("/v1/completions", kLong));
  rig.executor().wait_for_step(0);
  second.send(post_bytes("/v1/completions", kLong));
  ASSERT_TRUE(Rig::eventually([&] { return rig.counts().generations == 2; }));
  rig.executor().permit(1);
  rig.executor().wait_for_step(1);
  EXPECT_TRUE(Rig::eventually([&] {
    const auto samples = parse_page(watcher.get("/metrics").body);
    return samples.at("vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"}") == 1 &&
           samples.at("vllm:num_requests_waiting{engine=\"0\",model_name=\"tiny\"}") == 1;
  }));
}

}  // namespace
}  // namespace tokenstone::server::test
