#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "report/figures.h"
#include "report/summary.h"
#include "support/golden.h"
#include "support/sample_run.h"

namespace tokenstone::report {
namespace {

using record::RunResult;
using tokenstone::testing::answered_request;
using tokenstone::testing::expect_golden;
using tokenstone::testing::failed_request;
using tokenstone::testing::sample_run;
using Detail = SummaryOptions::Detail;

std::string summary_of(const RunResult& run, SummaryOptions options = {}) {
  const record::MetricSet metrics = record::compute_metrics(run);
  return summary(run, metrics, judge::judge(run, metrics), options);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

RunResult all_failed() {
  RunResult run = sample_run();
  for (auto& r : run.requests) r = failed_request(r.index, r.sent, record::ErrorClass::http_status, 500);
  return run;
}

RunResult small_closed_loop() {
  RunResult run;
  run.plan.request_rate = HUGE_VAL;
  run.plan.max_concurrency = 4;
  run.plan.target_kind = "engine";
  run.plan.target_address = "engine";
  run.plan.model_id = "tiny-15m";
  run.plan.plan_hash = "0001";
  run.plan.num_warmups = 8;
  run.plan.argv = {"bench", "serve", "--target", "engine", "--label", "it's"};
  for (std::uint32_t i = 0; i < 15; ++i)
    run.requests.push_back(answered_request(i, i * kMillisecond, 30 * kMicrosecond, 40 * kMicrosecond, 5));
  run.window_end = kSecond;
  return run;
}

TEST(Summary, GoldenCompact) {
  RunResult run = sample_run();
  run.run_dir = "runs/0142";
  expect_golden("summary.txt", summary_of(run));
}

TEST(Summary, GoldenFull) { expect_golden("summary_full.txt", summary_of(sample_run(), {.detail = Detail::full})); }

TEST(Summary, GoldenInvalid) { expect_golden("summary_invalid.txt", summary_of(all_failed())); }

TEST(Summary, FitsEightyColumnsWithoutControlCodes) {
  RunResult long_names = sample_run();
  long_names.plan.model_id = std::string(200, 'm');
  long_names.plan.environment["cpu"] = std::string(300, 'c');
  long_names.plan.server_version = "a server of the name " + std::string(100, 's');
  RunResult huge = sample_run();
  huge.plan.request_rate = 123456;
  huge.window_end = huge.window_start + kMillisecond;
  for (const RunResult& run : {sample_run(), long_names, huge, all_failed(), small_closed_loop(), RunResult{}}) {
    for (const Detail detail : {Detail::quiet, Detail::compact, Detail::full}) {
      const std::string text = summary_of(run, {.detail = detail});
      for (const std::string_view line : split(text, '\n')) EXPECT_LE(display_width(line), 80u) << line;
      EXPECT_EQ(text.find('\033'), std::string::npos);
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
      EXPECT_EQ(text.back(), '\n');
    }
  }
}

TEST(Summary, LineOneSaysTheWord) {
  RunResult run = sample_run();
  EXPECT_EQ(first_line(summary_of(run)), "PASS   p99 TTFT 69.1 ms <= 500 ms  at 12.0 req/s for 100 s");
  run.plan.slo[0].limit_ms = 50;
  EXPECT_EQ(first_line(summary_of(run)), "FAIL   p99 TTFT 69.1 ms > 50.0 ms  at 12.0 req/s for 100 s");
  run.plan.slo.clear();
  EXPECT_EQ(first_line(summary_of(run)), "DONE   p99 TTFT 69.1 ms  at 12.0 req/s for 100 s");
  run.interrupted = true;
  run.interruption = "Ctrl-C";
  EXPECT_EQ(first_line(summary_of(run)), "INVALID partial result, Ctrl-C: 1,200 of 1,200 requests ended");
  EXPECT_EQ(first_line(summary_of(all_failed())), "INVALID all 1,200 requests failed");
  EXPECT_EQ(first_line(summary_of(small_closed_loop())), "DONE   p50 TTFT 30.0 us~  with 4 in flight for 1.00 s");
  EXPECT_EQ(summary_of(run, {.detail = Detail::quiet}), first_line(summary_of(run)) + "\n");
}

TEST(Summary, LabelsAreSpelledAsFixed) {
  const std::string text = summary_of(sample_run());
  for (const char* label : {"\nrate     offered 12.00 req/s",
                            "delivered ",
                            "good ",
                            "in flight ",
                            " (max ",
                            "\ntokens/s input ",
                            "output ",
                            "total ",
                            "     p50     p90     p99   p99.9     max       n\n",
                            "\nTTFT           ms ",
                            "\nTPOT           ms ",
                            "\nITL            ms ",
                            "\nE2E            ms ",
                            "\noutput tokens ",
                            "\n       ~ fewer than 10 samples beyond: p99.9 needs 10,000 requests\n",
                            "\nengine    queue mean ",
                            "batch mean ",
                            "KV blocks free min ",
                            "prefix hits ",
                            "preemptions ",
                            "step ",
                            "\nrequests  1,200 planned",
                            " sent",
                            " in window",
                            " in drain",
                            " failed",
                            "\ngenerator send lag p99 ",
                            "stall max ",
                            "CPU 14",
                            "x headroom",
                            "  ok\n",
                            "\nV01 ",
                            "\n          -> ",
                            "\nagain     tokenstone bench serve"})
    EXPECT_NE(text.find(label), std::string::npos) << label << "\nin\n" << text;
}

TEST(Summary, TooFewSamplesAreMarkedOrWithheld) {
  const std::string text = summary_of(small_closed_loop());
  EXPECT_NE(text.find("~ fewer than 10 samples beyond: p50 needs 20, p90 needs 100, p99 needs"), std::string::npos)
      << text;
  EXPECT_NE(text.find("n/a"), std::string::npos);
}

TEST(Summary, ColourIsForTerminalsOnly) {
  EXPECT_TRUE(wants_colour(true, nullptr));
  EXPECT_TRUE(wants_colour(true, ""));
  EXPECT_FALSE(wants_colour(true, "1"));
  EXPECT_FALSE(wants_colour(false, nullptr));
  const std::string grey = summary_of(all_failed(), {.colour = true});
  EXPECT_EQ(grey.rfind("\033[1;33mINVALID\033[0m ", 0), 0u);
  EXPECT_NE(grey.find("\033[2mrate     offered"), std::string::npos) << "greyed under the reason";
  std::string plain;
  for (std::size_t i = 0; i < grey.size(); ++i) {
    if (grey[i] == '\033')
      i = grey.find('m', i);
    else
      plain += grey[i];
  }
  EXPECT_EQ(plain, summary_of(all_failed()));
}

TEST(Summary, ErrorsByClassWithOneSample) {  // FAIL-13
  const std::string text = summary_of(sample_run(), {.detail = Detail::full});
  EXPECT_NE(text.find("http_status 503"), std::string::npos);
  EXPECT_NE(text.find("for instance: connection reset by the server"), std::string::npos);
}

TEST(Summary, TheRepeatCommandCanBePasted) {
  RunResult run = small_closed_loop();
  EXPECT_EQ(repeat_command(run), "tokenstone bench serve --target engine --label 'it'\\''s'");
  run.run_dir = "my runs/1";
  EXPECT_EQ(repeat_command(run), "tokenstone bench serve --replay 'my runs/1'");
}

TEST(Summary, VirtualTimeHasNoLag) {
  RunResult run = small_closed_loop();
  run.plan.virtual_time = true;
  EXPECT_NE(summary_of(run).find("generator virtual time, no lag  ok\n"), std::string::npos);
}

TEST(Explain, GivesBothDefinitions) {
  const auto text = explain_key("p99_ttft_ms");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->rfind("ttft  TTFT, ms\n", 0), 0u);
  EXPECT_NE(text->find("first_token - sent"), std::string::npos);
  EXPECT_NE(text->find("  vLLM        From the start of the HTTP call"), std::string::npos);
  for (const auto& row : record::metric_table()) {
    const auto one = explain_key(row.key);
    ASSERT_TRUE(one.has_value());
    for (const std::string_view line : split(*one, '\n')) EXPECT_LE(display_width(line), 80u) << line;
  }
  const auto unknown = explain_key("tftt");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("did you mean 'ttft'?"), std::string::npos);
}

TEST(Figures, ThreeDigitsAndOneUnit) {
  EXPECT_EQ(time_text(412), "412 ms");
  EXPECT_EQ(time_text(1604), "1.60 s");
  EXPECT_EQ(time_text(0.05), "50.0 us");
  EXPECT_EQ(count_cell(3594), "3,594");
  EXPECT_EQ(count_cell(885'123), "885k");
  EXPECT_EQ(count_cell(12'300'000), "12.3M");
  EXPECT_EQ(aligned_rates({12, 11.98, 11.8}), (std::vector<std::string>{"12.00", "11.98", "11.80"}));
  EXPECT_EQ(aligned_rates({1234.5, 12}), (std::vector<std::string>{"1,235", "12"}));
  EXPECT_EQ(brief(0.4), "0.4");
  EXPECT_EQ(brief(41.2), "41");
  EXPECT_EQ(brief(0.0851), "0.085");
  EXPECT_EQ(brief(7), "7");
  EXPECT_EQ(brief(1234.5), "1,235");
  EXPECT_EQ(brief(0), "0");
  EXPECT_EQ(cut("abcdef", 4), "abc…");
  EXPECT_EQ(display_width("a·b…"), 4u);
}

}  // namespace
}  // namespace tokenstone::report
