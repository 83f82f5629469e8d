// The straight line, end to end: the load generator against real servers over HTTP, and what happens when they fail.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "bench/null_server_lib.h"
#include "platform/child_process.h"
#include "support/program.h"
#include "support/shared_data.h"

namespace {

namespace fs = std::filesystem;
using namespace tokenstone;
using nlohmann::json;
using tokenstone::testing::run_program;
using tokenstone::testing::ServerProcess;
using tokenstone::testing::temporary_folder;

std::vector<std::string> bench(const std::string& url, std::vector<std::string> more) {
  std::vector<std::string> args = {"bench", "serve", "--base-url", url};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

bench::NullServerOptions quick(bench::NullBehaviour behaviour = bench::NullBehaviour::stream) {
  return {.ttft = kMillisecond, .itl = kMillisecond, .behaviour = behaviour};
}

const std::vector<std::string> kSmall = {"--num-prompts",       "20", "--random-input-len", "16",
                                         "--random-output-len", "8",  "--num-warmups",      "0"};

std::vector<std::string> small(const std::string& url, std::vector<std::string> more) {
  std::vector<std::string> args = bench(url, kSmall);
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Serving, TheEmbeddedEngineOverHttpGivesWhatWasAsked) {
  ServerProcess server;
  const fs::path dir = temporary_folder();
  const auto ran =
      run_program(bench(server.url(), {"--num-prompts", "40", "--workload", "mixed", "--scale", "0.02",
                                       "--request-rate", "50", "--ignore-eos", "--json", "-", "--run-dir", "run"}),
                  dir.string());
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["completed"], 40);
  EXPECT_EQ(result["failed"], 0);
  std::ifstream requests(dir / "run" / "requests.csv");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(requests), {}, '\n'), 41);
  const auto report = run_program({"report", "run", "--json", "-"}, dir.string());
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(json::parse(report.out)["p99_ttft_ms"], result["p99_ttft_ms"]);
}

TEST(Serving, ChatAndTokenIdsWorkToo) {
  ServerProcess server;
  for (const auto& more : std::vector<std::vector<std::string>>{{"--backend", "openai-chat"}, {"--prompt-token-ids"}}) {
    std::vector<std::string> args = small(server.url(), more);
    args.insert(args.end(), {"--ignore-eos", "--json", "-", "--no-run-dir"});
    const auto ran = run_program(args);
    ASSERT_EQ(ran.exit_code, 0) << more[0] << ran.out << ran.err;
    EXPECT_EQ(json::parse(ran.out)["total_output_tokens"], 160);
  }
}

TEST(Serving, TheEngineInThisProcessLeavesStepsBesideTheRequests) {
  const fs::path dir = temporary_folder();
  const auto ran = run_program({"bench", "serve", "--target", "engine", "--num-prompts", "20", "--random-input-len",
                                "40", "--random-output-len", "8", "--request-rate", "100", "--run-dir", "run"},
                               dir.string());
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("\nengine "), std::string::npos) << ran.out;
  std::ifstream steps(dir / "run" / "steps.csv");
  EXPECT_GT(std::count(std::istreambuf_iterator<char>(steps), {}, '\n'), 8);
}

TEST(Serving, AWrongAnswerBeforeTheRunIsExit4) {
  using enum bench::NullBehaviour;
  for (const auto behaviour : {status, html, json_error, empty, close_unanswered}) {
    const auto server = bench::NullServer::start(quick(behaviour));
    ASSERT_TRUE(server);
    const fs::path dir = temporary_folder();
    const auto ran = run_program(small((*server)->base_url(), {}), dir.string());
    EXPECT_EQ(ran.exit_code, 4) << ran.out << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find((*server)->base_url()), std::string::npos) << ran.err;
    EXPECT_TRUE(!fs::exists(dir / "runs") || fs::is_empty(dir / "runs")) << "half a run was left";
  }
}

TEST(Serving, WrongAnswersDuringTheRunAreRecordsAndExit3) {
  using enum bench::NullBehaviour;
  const std::map<bench::NullBehaviour, std::string> classes = {
      {status, "http_status"},        {html, "not_event_stream"},
      {json_error, "stream_error"},   {gzip, "unsupported_content_encoding"},
      {empty, "empty_stream"},        {close_unanswered, "server_closed"},
      {truncate, "truncated_stream"}, {reset, "reset"},
      {error_event, "stream_error"},  {malformed_event, "malformed_event"}};
  for (const auto& [behaviour, name] : classes) {
    const auto server = bench::NullServer::start(quick(behaviour));
    ASSERT_TRUE(server);
    const fs::path dir = temporary_folder();
    const auto ran =
        run_program(small((*server)->base_url(), {"--ready-check-timeout-sec", "0", "--run-dir", "run", "--json", "-"}),
                    dir.string());
    EXPECT_EQ(ran.exit_code, 3) << name << ran.err;
    const json result = json::parse(ran.out);
    EXPECT_EQ(result["failed"], 20) << name;
    EXPECT_TRUE(result["mean_ttft_ms"].is_null()) << name;
    const std::string csv = tokenstone::testing::read_file(dir / "run" / "requests.csv");
    EXPECT_NE(csv.find(name), std::string::npos) << name << "\n" << csv.substr(0, 1000);
  }
}

TEST(Serving, TimeLimitsEndRequestsThatAreNeverAnswered) {
  const auto silent = bench::NullServer::start(quick(bench::NullBehaviour::never_answer));
  const auto stalled = bench::NullServer::start(quick(bench::NullBehaviour::stall));
  const auto first =
      run_program(small((*silent)->base_url(), {"--ready-check-timeout-sec", "0", "--first-token-timeout", "0.2",
                                                "--json", "-", "--no-run-dir"}));
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_NE(first.out.find("first_token_timeout"), std::string::npos);
  const auto gap = run_program(small((*stalled)->base_url(), {"--ready-check-timeout-sec", "0", "--gap-timeout", "0.2",
                                                              "--json", "-", "--no-run-dir"}));
  EXPECT_EQ(gap.exit_code, 3);
  EXPECT_NE(gap.out.find("gap_timeout"), std::string::npos);
}

TEST(Serving, AServerThatDiesInTheMiddleIsExit3AndTheRecordsAreKept) {
  const fs::path dir = temporary_folder();
  std::optional<ServerProcess> server{std::in_place};
  auto client =
      platform::ChildProcess::start({TOKENSTONE_BINARY_PATH, "bench", "serve", "--base-url", server->url(),
                                     "--num-prompts", "400", "--random-input-len", "16", "--random-output-len", "8",
                                     "--request-rate", "100", "--num-warmups", "0", "--run-dir", "run", "--ignore-eos"},
                                    dir.string());
  ASSERT_TRUE(client);
  const fs::path csv = dir / "run" / "requests.csv";
  const auto lines = [&] {
    std::ifstream in(csv);
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  while (lines() < 20 && !client->wait(20 * kMillisecond)) {
  }
  server->process().signal(SIGKILL);
  server->process().wait(10 * kSecond);
  EXPECT_EQ(client->wait(60 * kSecond), 3);
  const auto result = json::parse(tokenstone::testing::read_file(dir / "run" / "result.json"));
  EXPECT_GE(result["completed"].get<int>(), 19);
  EXPECT_EQ(result["completed"].get<int>() + result["failed"].get<int>() + result["unsent"].get<int>(), 400);
}

TEST(Serving, CtrlCDrainsReportsAndIsExit4) {
  const auto server = bench::NullServer::start(quick());
  const fs::path dir = temporary_folder();
  auto client = platform::ChildProcess::start({TOKENSTONE_BINARY_PATH,
                                               "bench",
                                               "serve",
                                               "--base-url",
                                               (*server)->base_url(),
                                               "--num-prompts",
                                               "100000",
                                               "--random-input-len",
                                               "8",
                                               "--random-output-len",
                                               "4",
                                               "--request-rate",
                                               "100",
                                               "--num-warmups",
                                               "0",
                                               "--run-dir",
                                               "run",
                                               "--skip-tokenizer-init",
                                               "--save-result",
                                               "--result-filename",
                                               "vllm.json"},
                                              dir.string());
  ASSERT_TRUE(client);
  while ((*server)->stats().requests < 30 && !client->wait(20 * kMillisecond)) {
  }
  client->signal(SIGINT);
  EXPECT_EQ(client->wait(60 * kSecond), 4);
  const auto report = run_program({"report", "run"}, dir.string());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_NE(report.out.find("interrupted"), std::string::npos) << report.out;
  const auto saved = json::parse(tokenstone::testing::read_file(dir / "vllm.json"));
  EXPECT_GE(saved["completed"].get<int>(), 20);
}

TEST(Serving, AKilledRunKeepsAllButItsLastSecond) {
  const auto server = bench::NullServer::start(quick());
  const fs::path dir = temporary_folder();
  auto client = platform::ChildProcess::start(
      {TOKENSTONE_BINARY_PATH, "bench", "serve", "--base-url", (*server)->base_url(), "--num-prompts", "100000",
       "--random-input-len", "8", "--random-output-len", "4", "--request-rate", "200", "--num-warmups", "0",
       "--run-dir", "run", "--skip-tokenizer-init"},
      dir.string());
  ASSERT_TRUE(client);
  // 600 requests are 3 s of load: at least the first 2 s of them must have been written.
  while ((*server)->stats().requests < 600 && !client->wait(20 * kMillisecond)) {
  }
  client->signal(SIGKILL);
  client->wait(10 * kSecond);
  const auto report = run_program({"report", "run", "--json", "-"}, dir.string());
  EXPECT_EQ(report.exit_code, 4) << report.err;
  EXPECT_GE(json::parse(report.out)["completed"].get<int>(), 380);
}

TEST(Serving, APortInUseIsNamed) {
  const auto server = bench::NullServer::start(quick());
  const std::string port = std::to_string((*server)->port());
  const auto ran = run_program({"serve", "tiny-15m", "--port", port});
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.err.find(port), std::string::npos) << ran.err;
}

TEST(Serving, SigtermFinishesWhatRunsAndEnds) {
  ServerProcess server;
  auto client = platform::ChildProcess::start(
      {TOKENSTONE_BINARY_PATH, "bench", "serve", "--base-url", server.url(), "--num-prompts", "4", "--random-input-len",
       "16", "--random-output-len", "200", "--num-warmups", "0", "--no-run-dir", "--json", "-"},
      temporary_folder().string());
  ASSERT_TRUE(client);
  const auto running = [&] {
    const auto metrics = platform::run_command(
        {"bash", "-c",
         "exec 3<>/dev/tcp/127.0.0.1/" + server.url().substr(server.url().rfind(':') + 1) +
             "; printf 'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"},
        10 * kSecond);
    return metrics &&
           metrics->out.find("num_requests_running{engine=\"0\",model_name=\"tiny-15m\"} 4") != std::string::npos;
  };
  while (!running() && !client->wait(kMillisecond)) {
  }
  server.process().signal(SIGTERM);
  EXPECT_EQ(client->wait(60 * kSecond), 0);
  EXPECT_EQ(server.process().wait(60 * kSecond), 0);
}

TEST(Serving, SecretsAreNeverPrintedOrKept) {
  const auto server = bench::NullServer::start(quick());
  const fs::path dir = temporary_folder();
  const auto ran =
      run_program(small((*server)->base_url(), {"--header", "X-Key=hidden-header", "--run-dir", "run", "--full"}),
                  dir.string(), {"OPENAI_API_KEY=hidden-key"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::string all = ran.out + ran.err;
  for (const auto& entry : fs::directory_iterator(dir / "run")) all += tokenstone::testing::read_file(entry.path());
  EXPECT_EQ(all.find("hidden"), std::string::npos);
}

TEST(Serving, AServerThatNeedsTimeToStartIsWaitedFor) {
  const auto probe = bench::NullServer::start(quick());
  auto options = quick();
  options.port = (*probe)->port();
  const std::string url = (*probe)->base_url();
  const_cast<std::unique_ptr<bench::NullServer>&>(*probe).reset();
  auto client =
      platform::ChildProcess::start({TOKENSTONE_BINARY_PATH, "bench", "serve", "--base-url", url, "--num-prompts", "5",
                                     "--random-input-len", "8", "--random-output-len", "4", "--num-warmups", "0",
                                     "--no-run-dir", "--ready-check-timeout-sec", "60", "--request-rate", "50"},
                                    temporary_folder().string());
  ASSERT_TRUE(client);
  EXPECT_FALSE(client->wait(1500 * kMillisecond)) << "gave up at once";
  const auto server = bench::NullServer::start(options);
  ASSERT_TRUE(server);
  EXPECT_EQ(client->wait(60 * kSecond), 0);
}

}  // namespace
