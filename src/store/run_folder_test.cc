#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "judge/verdict.h"
#include "report/result_json.h"
#include "report/summary.h"
#include "store/run_folder.h"
#include "support/sample_run.h"
#include "support/shared_data.h"

namespace tokenstone::store {
namespace {

namespace fs = std::filesystem;
using record::RunResult;
using tokenstone::testing::read_file;
using tokenstone::testing::sample_run;
using tokenstone::testing::temporary_folder;

std::string result_of(const RunResult& run) {
  const record::MetricSet metrics = record::compute_metrics(run);
  return report::result_json(run, metrics, judge::judge(run, metrics));
}

/// Records in the order of completion, as a run makes them.
std::vector<record::RequestRecord> by_completion(const RunResult& run) {
  std::vector<record::RequestRecord> ended;
  for (const auto& r : run.requests)
    if (r.finished != kUnknownTime) ended.push_back(r);
  std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.finished < b.finished; });
  return ended;
}

void write_records(RunFolder& folder, const RunResult& run) {
  for (const auto& r : by_completion(run)) folder.on_request(r);
  for (const auto& s : run.steps) folder.step_sink().on_step(s);
}

std::string saved(const RunResult& run, const fs::path& dir) {
  auto folder = RunFolder::create(dir.string(), run.plan);
  EXPECT_TRUE(folder.has_value());
  write_records(*folder, run);
  EXPECT_TRUE(folder->finish(run, result_of(run)).has_value());
  return folder->path();
}

TEST(RunFolder, ARunComesBackAsItWas) {
  RunResult run = sample_run();
  run.requests[1].text = "some text, \"kept\"\nhere";
  run.requests[1].missing_done = true;
  run.requests[9] = record::RequestRecord{};  // never sent
  run.requests[9].index = 9;
  const std::string dir = saved(run, temporary_folder() / "run");
  const auto loaded = load_run(dir);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(result_of(*loaded), result_of(run)) << "result.json can be made again from the records";
  EXPECT_EQ(read_file(dir + "/result.json"), result_of(run));
  ASSERT_EQ(loaded->requests.size(), run.requests.size());
  EXPECT_EQ(loaded->requests[1].text, run.requests[1].text);
  EXPECT_EQ(loaded->requests[100].error, run.requests[100].error);
  EXPECT_EQ(loaded->requests[3].events.size(), run.requests[3].events.size());
  EXPECT_EQ(loaded->audit.send_lag, run.audit.send_lag);
  RunResult detailed = *loaded;
  detailed.plan.save_detailed = run.plan.save_detailed = true;
  EXPECT_EQ(report::vllm_result_json(detailed, record::compute_metrics(detailed)),
            report::vllm_result_json(run, record::compute_metrics(run)));
  EXPECT_EQ(loaded->run_dir, dir);
}

TEST(RunFolder, NumbersGoOn) {
  const fs::path root = temporary_folder() / "runs";
  for (const char* name : {"0001", "0002"}) {
    const auto folder = RunFolder::create("", sample_run().plan, root.string());
    ASSERT_TRUE(folder.has_value());
    EXPECT_EQ(folder->path(), (root / name).string());
  }
  fs::create_directory(root / "0041");
  fs::create_directory(root / "notes");
  EXPECT_EQ(RunFolder::create("", sample_run().plan, root.string())->path(), (root / "0042").string());
}

TEST(RunFolder, RefusesWhatItMustNotTouch) {
  const fs::path root = temporary_folder();
  std::ofstream(root / "file") << "x";
  for (const fs::path& dir : {root, root / "file", root / "file" / "below"}) {
    const auto folder = RunFolder::create(dir.string(), sample_run().plan);
    ASSERT_FALSE(folder.has_value()) << dir;
    EXPECT_EQ(folder.error().kind, ErrorKind::usage);
    EXPECT_NE(folder.error().message.find("--run-dir"), std::string::npos);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 1) << "nothing was written";
  fs::create_directory(root / "empty");
  EXPECT_TRUE(RunFolder::create((root / "empty").string(), sample_run().plan).has_value());
}

TEST(RunFolder, AKilledRunKeepsWhatWasFlushed) {
  const RunResult run = sample_run();
  const fs::path dir = temporary_folder() / "run";
  auto folder = RunFolder::create(dir.string(), run.plan);
  ASSERT_TRUE(folder.has_value());
  const auto ended = by_completion(run);
  for (std::size_t i = 0; i < 500; ++i) folder->on_request(ended[i]);
  ASSERT_TRUE(folder->maybe_flush(0).has_value());
  for (std::size_t i = 500; i < 600; ++i) folder->on_request(ended[i]);  // not flushed: lost by the kill
  const auto loaded = load_run(dir.string());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(loaded->interrupted);
  EXPECT_EQ(loaded->requests.size(), 1200u);
  const record::MetricSet metrics = record::compute_metrics(*loaded);
  const judge::Verdict verdict = judge::judge(*loaded, metrics);
  EXPECT_EQ(metrics.count("completed") + metrics.count("failed"), 500u);
  EXPECT_EQ(metrics.count("unsent"), 700u);
  EXPECT_EQ(verdict.exit_code, 4);
  EXPECT_EQ(report::summary(*loaded, metrics, verdict, {.detail = report::SummaryOptions::Detail::quiet}),
            "INVALID partial result, killed before its end: 500 of 1,200 requests ended\n");
}

TEST(RunFolder, EveryTornFileIsReadUpToTheTear) {
  RunResult run = sample_run();
  run.requests.resize(20);
  run.plan.num_prompts = 20;
  const std::string dir = saved(run, temporary_folder() / "run");
  fs::remove(dir + "/run.json");
  for (const char* name : {"requests.csv", "details.jsonl", "events.bin", "steps.csv"}) {
    const std::string whole = read_file(fs::path(dir) / name);
    for (const std::size_t lost : {1u, 2u, 7u, 33u, 100u}) {
      fs::resize_file(fs::path(dir) / name, whole.size() - lost);
      const auto loaded = load_run(dir);
      ASSERT_TRUE(loaded.has_value()) << name << " without " << lost << ": " << loaded.error().message;
      EXPECT_EQ(loaded->requests.size(), 20u);
    }
    std::ofstream(fs::path(dir) / name, std::ios::binary) << whole;
  }
}

TEST(RunFolder, LostDetailsCostNoRequest) {
  RunResult run = sample_run();
  run.requests.resize(20);
  run.plan.num_prompts = 20;
  const std::string dir = saved(run, temporary_folder() / "run");
  fs::remove(dir + "/details.jsonl");
  const auto loaded = load_run(dir);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(record::compute_metrics(*loaded).count("completed"), 20u);
}

TEST(RunFolder, SaysWhatIsNoRun) {
  const auto loaded = load_run(temporary_folder().string());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind, ErrorKind::usage);
  EXPECT_NE(loaded.error().message.find("plan.json"), std::string::npos);
}

TEST(Export, EventsAsCsv) {
  RunResult run = sample_run();
  run.requests.resize(2);
  run.plan.num_prompts = 2;
  run.requests[1].request_id = "a, \"b\"";
  const auto csv = events_csv(saved(run, temporary_folder() / "run"));
  ASSERT_TRUE(csv.has_value());
  const auto lines = split(*csv, '\n');
  EXPECT_EQ(lines[0], "request_id,index,event,arrived,parsed,tokens,kind,shared_stamp");
  EXPECT_EQ(lines[1], "req-0,0,0,30000000,30015000,1,text,0");
  EXPECT_EQ(lines.size(), 1 + run.requests[0].events.size() + run.requests[1].events.size() + 1);
  EXPECT_EQ(lines[1 + run.requests[0].events.size()].rfind("\"a, \"\"b\"\"\",1,0,", 0), 0u);
}

}  // namespace
}  // namespace tokenstone::store
