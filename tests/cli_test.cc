// The command line as a person meets it: bad input, exit codes, and runs in virtual time.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/check_report.h"
#include "support/program.h"
#include "support/shared_data.h"

namespace {

namespace fs = std::filesystem;
using namespace tokenstone;
using tokenstone::testing::run_program;
using tokenstone::testing::temporary_folder;

struct BadInput {
  std::vector<std::string> args;
  int exit_code;
  std::string says;
};

std::size_t entries(const fs::path& dir) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), fs::directory_iterator{}));
}

void expect_refused(const BadInput& bad) {
  const fs::path dir = temporary_folder();
  const auto ran = run_program(bad.args, dir.string());
  const std::string shown = ::testing::PrintToString(bad.args) + "\n" + ran.out + ran.err;
  EXPECT_EQ(ran.exit_code, bad.exit_code) << shown;
  EXPECT_NE(ran.err.find(bad.says), std::string::npos) << "expected '" << bad.says << "' from " << shown;
  EXPECT_EQ(ran.out, "") << shown;
  EXPECT_EQ(entries(dir), 0u) << "something was left behind by " << shown;
}

const std::vector<std::string> kSim = {"bench", "serve", "--target", "sim:const", "--num-prompts", "10"};

std::vector<std::string> sim(std::vector<std::string> more) {
  std::vector<std::string> all = kSim;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(BadInput, IsAnsweredWithOneLineAndTheNextStep) {
  const fs::path files = temporary_folder();
  std::ofstream(files / "empty.jsonl").close();
  std::ofstream(files / "useless.jsonl") << "{\"no\": 1}\n{\"no\": 2}\n";
  std::ofstream(files / "text.gguf") << "this is no model";
  std::ofstream(files / "cut.gguf") << std::string("GGUF\3\0\0\0\1\0\0\0", 12);
  std::ofstream(files / "broken.json") << "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}}";
  const std::string at = files.string() + "/";
  const std::vector<BadInput> cases = {
      {{"bench", "serv"}, 1, "did you mean 'bench serve'"},
      {{"serev"}, 1, "did you mean 'serve'"},
      {sim({"--request-rte", "3"}), 1, "did you mean --request-rate"},
      {sim({"--request-rate", "-1"}), 1, "--request-rate must be above 0"},
      {sim({"--request-rate", "0"}), 1, "--request-rate must be above 0"},
      {sim({"--request-rate", "fast"}), 1, "needs a number"},
      {sim({"--request-rate", "5", "--burstiness", "0"}), 1, "--burstiness must be above 0"},
      {sim({"--num-prompts", "0"}), 1, "--num-prompts must be at least 1"},
      {sim({"--max-concurrency", "0"}), 1, "--max-concurrency must be at least 1"},
      {sim({"--dataset-name", "custom", "--dataset-path", at + "empty.jsonl"}), 1, "empty"},
      {sim({"--dataset-name", "custom", "--dataset-path", at + "useless.jsonl"}), 1, "0 of 2"},
      {sim({"--dataset-name", "custom", "--dataset-path", at + "absent.jsonl"}), 1, "absent.jsonl"},
      {sim({"--dataset-name", "cutsom"}), 1, "custom"},
      {sim({"--base-url", "http://127.0.0.1:1"}), 1, "exclude each other"},
      {sim({"--goodput", "tfft:200"}), 1, "ttft"},
      {sim({"--slo", "ttft.p99>500ms"}), 1, "ttft.p99"},
      {sim({"--lora-modules", "a"}), 1, "--lora-modules is not supported"},
      {sim({"--variant", "naive"}), 1, "not built yet"},
      {sim({"--stages", "1:30s,nonsense"}), 1, "nonsense"},
      {sim({"--sim-max-model-len", "512"}), 1, "512"},
      {sim({"--extra", "1"}), 1, "unknown flag --extra"},
      {{"bench", "serve", "--target", "sim:h100"}, 1, "sim:const"},
      {{"bench", "serve", "--base-url", "http://127.0.0.1:1", "--num-prompts", "1"}, 4, "127.0.0.1:1"},
      {{"bench", "serve", "--base-url", "https://127.0.0.1:1"}, 1, "not built yet"},
      {{"bench", "serve", "--base-url", "http://127.0.0.1:1", "--tokenizer", at + "broken.json"}, 1, "broken.json"},
      {{"bench", "serve", "--target", "engine", "--model", at + "text.gguf"}, 1, "text.gguf"},
      {{"bench", "serve", "--target", "engine", "--model", at + "cut.gguf"}, 1, "cut.gguf"},
      {{"bench", "serve", "--target", "engine", "--model", "tiny-16m"}, 1, "tiny-15m"},
      {{"serve", "tiny-15m", "--block-size", "17"}, 1, "--block-size"},
      {{"serve", "tiny-15m", "--tensor-parallel-size", "2"}, 1, "--tensor-parallel-size is not supported"},
      {{"model", "inspect", at + "text.gguf"}, 1, "text.gguf"},
      {{"tokenize", "--tokenizer", at + "broken.json", "--text", "x"}, 1, "merges"},
      {{"report", at + "nowhere"}, 1, "nowhere"},
  };
  for (const BadInput& bad : cases) expect_refused(bad);
}

TEST(BadInput, ARunFolderThatIsNotEmptyOrNotWritableIsRefused) {
  const fs::path dir = temporary_folder();
  std::ofstream(dir / "something").close();
  const auto ran = run_program(sim({"--run-dir", dir.string()}));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(entries(dir), 1u);
  const auto blocked = run_program(sim({"--run-dir", (dir / "something" / "run").string()}));
  EXPECT_EQ(blocked.exit_code, 1) << blocked.err;
  const auto result = run_program(sim({"--no-run-dir", "--save-result", "--result-dir", (dir / "something").string()}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
}

TEST(CommandLine, TheHelpFitsAScreen) {
  const auto ran = run_program({"--help"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_LE(std::count(ran.out.begin(), ran.out.end(), '\n'), 24) << ran.out;
  for (const auto& command : std::vector<std::vector<std::string>>{{"serve"},
                                                                   {"bench", "serve"},
                                                                   {"bench", "latency"},
                                                                   {"bench", "throughput"},
                                                                   {"report"},
                                                                   {"tokenize"},
                                                                   {"model"},
                                                                   {"export"}}) {
    std::vector<std::string> args = command;
    args.push_back("--help");
    const auto help = run_program(args);
    EXPECT_EQ(help.exit_code, 0) << command[0];
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(CommandLine, JsonOnStdoutAndNothingElseThere) {
  const auto ran = run_program(sim({"--json", "-"}));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["completed"], 10);
  EXPECT_TRUE(json["checks"].is_array());
}

TEST(CommandLine, AnObjectiveThatIsMissedIsExit2) {
  EXPECT_EQ(run_program(sim({"--slo", "e2el.p50<1ms"})).exit_code, 2);
  const auto passed = run_program(sim({"--slo", "e2el.p50<1000s"}));
  EXPECT_EQ(passed.exit_code, 0) << passed.out;
  EXPECT_EQ(passed.out.substr(0, 4), "PASS");
}

TEST(CommandLine, TheSummaryFitsEightyColumnsAndHasNoControlCodes) {
  const auto ran = run_program(sim({"--full"}));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 80u + 8) << line;  // a middle dot takes two bytes
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
}

TEST(CommandLine, ADryRunSendsNothingAndShowsTheSchedule) {
  const fs::path dir = temporary_folder();
  const auto ran = run_program(sim({"--dry-run", "--json", "-", "--request-rate", "5"}), dir.string());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["requests"].size(), 10u);
  EXPECT_EQ(json["requests"][9]["intended"], 2'000'000'000);  // N / rate, as vLLM rescales
  EXPECT_EQ(entries(dir), 0u);
}

std::map<std::string, std::string> files_of(const fs::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), dir).string()] = tokenstone::testing::read_file(entry.path());
  return files;
}

/// What may differ between two runs of one plan: the date and the machine.
std::string without_date_and_environment(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return text;
  for (const char* key : {"date", "environment"}) {
    json.erase(key);
    if (json.contains("plan")) json["plan"].erase(key);
  }
  return json.dump();
}

TEST(VirtualTime, TenThousandRequestsGiveTheSameBytesTwice) {
  std::map<std::string, std::string> first;
  std::size_t identical = 0;
  const std::size_t runs = 3;
  for (std::size_t run = 0; run < runs; ++run) {
    const fs::path dir = temporary_folder();
    const auto ran = run_program({"bench",
                                  "serve",
                                  "--target",
                                  "sim:const",
                                  "--num-prompts",
                                  "10000",
                                  "--request-rate",
                                  "40",
                                  "--workload",
                                  "mixed",
                                  "--scale",
                                  "0.1",
                                  "--sim-prefill-us-per-token",
                                  "5",
                                  "--sim-decode-us",
                                  "3000",
                                  "--seed",
                                  "7",
                                  "--run-dir",
                                  "run"},
                                 dir.string());
    ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    auto files = files_of(dir / "run");
    ASSERT_GE(files.size(), 5u);
    for (auto& [name, text] : files)
      if (name.ends_with(".json")) text = without_date_and_environment(text);
    files["stdout"] = ran.out;
    if (run == 0)
      first = files;
    else
      identical += files == first ? 1 : 0;
    for (const auto& [name, text] : files) EXPECT_EQ(text == first[name], true) << name << " differs";
  }
  tokenstone::testing::report_check({.id = "spine.virtual_identical",
                                     .value = static_cast<double>(identical),
                                     .n = 10000,
                                     .unit = "repeated runs",
                                     .op = ">=",
                                     .target = 2,
                                     .pass = identical >= 2});
  EXPECT_EQ(identical, runs - 1);
}

TEST(VirtualTime, AReplayRepeatsTheRun) {
  const fs::path dir = temporary_folder();
  ASSERT_EQ(run_program(sim({"--request-rate", "3", "--seed", "5", "--run-dir", "a"}), dir.string()).exit_code, 0);
  const auto again = run_program({"bench", "serve", "--replay", "a", "--run-dir", "b"}, dir.string());
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(tokenstone::testing::read_file(dir / "a" / "requests.csv"),
            tokenstone::testing::read_file(dir / "b" / "requests.csv"));
}

TEST(VirtualTime, AReportFromTheRecordsIsTheSummaryOfTheRun) {
  const fs::path dir = temporary_folder();
  const auto ran = run_program(sim({"--request-rate", "3", "--run-dir", "a"}), dir.string());
  const auto report = run_program({"report", "a"}, dir.string());
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.out, ran.out);
}

TEST(VirtualTime, RepeatedRunsHaveSeedsOfTheirOwnAndASpread) {
  const auto ran = run_program(sim({"--request-rate", "3", "--num-runs", "3", "--no-run-dir"}));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("CV %"), std::string::npos) << ran.out;
}

}  // namespace
