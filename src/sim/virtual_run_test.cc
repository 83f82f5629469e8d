// The engine in virtual time against what a person computes on paper, against queueing theory, and against itself.
//
// P is the cost of a prompt token, D that of a step that decodes; times in microseconds in the comments.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/rng.h"
#include "base/virtual_loop.h"
#include "sim/const_executor.h"

namespace tokenstone::sim {
namespace {

constexpr TimeNs us = kMicrosecond;

struct Arrival {
  TimeNs at = 0;
  std::uint32_t prompt = 0;
  std::int32_t output = 1;
  TokenId first_token = 0;  ///< of the prompt; requests a long way apart share nothing
};

struct Answer final : runtime::EngineSink {
  void on_output(const runtime::EngineOutput& output) override {
    for (std::size_t i = 0; i < output.tokens.size(); ++i) token_times.push_back(output.at);
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    if (output.finished) timing = *output.timing, finished = true;
  }
  TimeNs ttft() const { return token_times.at(0) - timing.arrival; }
  double tpot() const {
    return static_cast<double>(token_times.back() - token_times[0]) / static_cast<double>(token_times.size() - 1);
  }
  std::vector<TimeNs> token_times;
  std::vector<TokenId> tokens;
  runtime::EngineTiming timing;
  bool finished = false;
};

struct Steps final : record::StepSink {
  void on_step(const record::StepRecord& step) override { all.push_back(step); }
  std::vector<record::StepRecord> all;
};

sched::SchedulerConfig config_with(std::uint32_t max_num_seqs, std::uint32_t budget) {
  sched::SchedulerConfig config;
  config.block_size = 16;
  config.num_blocks = 4096;
  config.max_model_len = 32'768;
  config.max_num_seqs = max_num_seqs;
  config.max_num_batched_tokens = budget;
  config.eos_token_ids = {2};
  return config;
}

/// The driver: each request is submitted at its instant; the loop runs until nothing is left.
struct Trial {
  Trial(const sched::SchedulerConfig& config, ConstCosts costs, std::vector<Arrival> arrivals)
      : answers(arrivals.size()) {
    engine = make_const_engine(loop, config, costs, &steps).value();
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      loop.at(arrivals[i].at, [this, i, a = arrivals[i]] { submit(i, a); });
    loop.run();
  }
  void submit(std::size_t i, const Arrival& arrival) {
    runtime::EngineRequest request;
    request.prompt.resize(arrival.prompt);
    std::iota(request.prompt.begin(), request.prompt.end(), arrival.first_token);
    request.sampling.max_tokens = arrival.output;
    const auto submitted = engine.engine->submit(std::move(request), answers[i]);
    if (!submitted) throw std::runtime_error(submitted.error().message);
  }

  VirtualLoop loop;
  Steps steps;
  ConstEngine engine;
  std::vector<Answer> answers;
};

// One request, 10 tokens in, 3 out; P = 1, D = 5. Prefill 0..10 gives the first token, decodes end at 15 and 20.
TEST(ByHand, OneRequest) {
  Trial run(config_with(8, 64), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us}, {{0, 10, 3}});
  EXPECT_EQ(run.answers[0].token_times, (std::vector<TimeNs>{10 * us, 15 * us, 20 * us}));
  EXPECT_EQ(run.answers[0].ttft(), 10 * us);
  EXPECT_DOUBLE_EQ(run.answers[0].tpot(), 5.0 * us);
  EXPECT_EQ(run.steps.all.size(), 3u);
}

// Two at once, 10 and 20 tokens in, 3 out: one prefill step of 30 tokens, 0..30; then both decode in steps of 5.
// 6 tokens in 40 us: 150,000 tokens/s.
TEST(ByHand, TwoShareTheirSteps) {
  Trial run(config_with(8, 64), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us},
            {{0, 10, 3, 0}, {0, 20, 3, 1000}});
  for (const Answer& answer : run.answers)
    EXPECT_EQ(answer.token_times, (std::vector<TimeNs>{30 * us, 35 * us, 40 * us}));
  const double tokens = static_cast<double>(run.answers[0].tokens.size() + run.answers[1].tokens.size());
  EXPECT_DOUBLE_EQ(tokens / to_seconds(run.loop.now()), 150'000.0);
}

// Budget 16, P = 1, D = 5. A: 40 tokens at 0, 2 out. B: 8 tokens at 5, 3 out.
//   step 0   0..16  A 16 tokens
//   step 1  16..32  A 16 tokens; no budget is left for B
//   step 2  32..48  A 8 tokens, first token; B 8 tokens, first token
//   step 3  48..53  both decode; A has its 2
//   step 4  53..58  B has its 3
// B waits 32 - 5 = 27 in the queue; its TTFT is 43, its TPOT 5.
TEST(ByHand, AChunkedPromptAndOneBehindIt) {
  Trial run(config_with(8, 16), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us},
            {{0, 40, 2, 0}, {5 * us, 8, 3, 1000}});
  const Answer &a = run.answers[0], &b = run.answers[1];
  EXPECT_EQ(a.token_times, (std::vector<TimeNs>{48 * us, 53 * us}));
  EXPECT_EQ(b.token_times, (std::vector<TimeNs>{48 * us, 53 * us, 58 * us}));
  EXPECT_EQ(b.timing.scheduled_prefill - b.timing.arrival, 27 * us);
  EXPECT_EQ(b.ttft(), 43 * us);
  EXPECT_DOUBLE_EQ(b.tpot(), 5.0 * us);
  EXPECT_EQ(a.timing.chunks, 3);
  ASSERT_EQ(run.steps.all.size(), 5u);
  EXPECT_EQ(run.steps.all[1].waiting_queue_len, 1u);
  EXPECT_EQ(run.steps.all[2].chunked, 1u) << "A's last part; B is whole";
}

// One at a time, 10 in, 2 out, P = 1, D = 5: a request takes 15. Three at 0: first tokens at 10, 25, 40; the last ends
// at 45.
TEST(ByHand, AQueueOfThree) {
  Trial run(config_with(1, 64), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us},
            {{0, 10, 2, 0}, {0, 10, 2, 1000}, {0, 10, 2, 2000}});
  EXPECT_EQ(run.answers[0].ttft(), 10 * us);
  EXPECT_EQ(run.answers[1].ttft(), 25 * us);
  EXPECT_EQ(run.answers[2].ttft(), 40 * us);
  EXPECT_EQ(run.loop.now(), 45 * us);
}

// A prompt joins a running decode. P = 1, D = 5. A: 4 in, 4 out at 0. B: 6 in, 2 out at 5.
//   step 0   0..4   A's prompt                  step 2   9..20  A decodes (5) with B's prompt (6)
//   step 1   4..9   A decodes; B arrives at 5   step 3  20..25  both decode
TEST(ByHand, AMixedStepCostsBoth) {
  Trial run(config_with(8, 64), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us},
            {{0, 4, 4, 0}, {5 * us, 6, 2, 1000}});
  EXPECT_EQ(run.answers[0].token_times, (std::vector<TimeNs>{4 * us, 9 * us, 20 * us, 25 * us}));
  EXPECT_EQ(run.answers[1].token_times, (std::vector<TimeNs>{20 * us, 25 * us}));
}

// The same 40 tokens again, blocks of 16: 32 are cached and 8 computed. P = 1: 40 us, then 8 us.
TEST(ByHand, ACachedPrefixIsNotPaidFor) {
  Trial run(config_with(8, 64), {.prefill_ns_per_token = 1 * us, .decode_ns = 5 * us},
            {{0, 40, 1, 0}, {100 * us, 40, 1, 0}});
  EXPECT_EQ(run.answers[0].ttft(), 40 * us);
  EXPECT_EQ(run.answers[1].ttft(), 8 * us);
  EXPECT_EQ(run.answers[1].timing.cached_tokens, 32);
}

// --- M/D/1 ---------------------------------------------------------------------------------------------
// One request at a time, one output token, no cache: service takes S = P x prompt exactly, arrivals are Poisson.
// The mean wait is rho S / (2 (1 - rho)) (Pollaczek 1930, Khinchine 1932; constant service).

struct Waits {
  double mean = 0, half_width = 0;  ///< in units of S; 99 %
};

/// Batch means: waits are correlated, means of long batches hardly.
Waits batch_means(const std::vector<TimeNs>& waits, double service) {
  constexpr std::size_t batches = 40;
  constexpr double t_quantile = 2.708;  // Student, 39 degrees of freedom, 99.5 %
  const std::size_t each = waits.size() / batches;
  double sum = 0, squares = 0;
  for (std::size_t b = 0; b < batches; ++b) {
    double mean = 0;
    for (std::size_t i = 0; i < each; ++i)
      mean += static_cast<double>(waits[b * each + i]) / service / static_cast<double>(each);
    sum += mean;
    squares += mean * mean;
  }
  const double mean = sum / batches;
  const double variance = (squares - batches * mean * mean) / (batches - 1);
  return {mean, t_quantile * std::sqrt(variance / batches)};
}

class MD1 : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Loads, MD1, ::testing::Values(0.5, 0.8),
                         [](const auto& load) { return fmt::format("Rho{:.0f}", load.param * 100); });

TEST_P(MD1, MeanWaitIsThatOfTheory) {
  const double rho = GetParam();
  constexpr std::uint32_t prompt = 8;
  constexpr TimeNs service = prompt * 125 * us;
  constexpr std::size_t warm_up = 2'000, measured = 80'000;
  sched::SchedulerConfig config = config_with(1, 64);
  config.enable_prefix_caching = false;
  Rng rng(1, streams::arrivals);
  std::vector<Arrival> arrivals;
  double at = 0;
  for (std::size_t i = 0; i < warm_up + measured; ++i) {
    at += rng.exponential() * static_cast<double>(service) / rho;
    arrivals.push_back({.at = std::llround(at), .prompt = prompt});
  }
  const Trial run(config, {.prefill_ns_per_token = 125 * us}, arrivals);

  std::vector<TimeNs> waits;
  TimeNs free_at = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const TimeNs start = std::max(free_at, arrivals[i].at);  // Lindley's recursion, to the nanosecond
    free_at = start + service;
    ASSERT_EQ(run.answers[i].timing.scheduled_prefill, start) << i;
    if (i >= warm_up) waits.push_back(start - arrivals[i].at);
  }
  const Waits found = batch_means(waits, static_cast<double>(service));
  const double theory = rho / (2 * (1 - rho));
  EXPECT_NEAR(found.mean, theory, found.half_width);
  EXPECT_LT(found.half_width, 0.1 * theory) << "an interval this wide would prove nothing";
}

// --- repeatable ----------------------------------------------------------------------------------------

std::string records_of(std::uint64_t seed) {
  Rng times(seed, streams::arrivals), lengths(seed, streams::lengths);
  std::vector<Arrival> arrivals;
  double at = 0;
  for (int i = 0; i < 10'000; ++i) {
    at += times.exponential() * 4e6;
    arrivals.push_back({.at = std::llround(at),
                        .prompt = static_cast<std::uint32_t>(lengths.uniform_int(1, 400)),
                        .output = static_cast<std::int32_t>(lengths.uniform_int(1, 60)),
                        .first_token = static_cast<TokenId>(lengths.uniform_int(0, 20) * 1000)});
  }
  sched::SchedulerConfig config = config_with(32, 256);
  config.num_blocks = 320;  // small enough to preempt and to evict
  const Trial run(config, {.prefill_ns_per_token = 20 * us, .decode_ns = 900 * us}, arrivals);
  std::string text;
  for (const Answer& a : run.answers)
    text += fmt::format("{} {} {} {} {} {} {}|{}\n", a.timing.arrival, a.timing.scheduled_prefill, a.timing.finished,
                        a.timing.cached_tokens, a.timing.chunks, a.timing.preemptions, fmt::join(a.token_times, ","),
                        fmt::join(a.tokens, ","));
  for (const record::StepRecord& s : run.steps.all)
    text += fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", s.step_id, s.step_start_time,
                        s.step_end_time, s.num_prefill_tokens, s.num_decode_sequences, s.num_outputs, s.chunked,
                        s.waiting_queue_len, s.running_queue_len, s.blocks_active, s.blocks_cached_idle, s.wasted_slots,
                        s.hit_tokens, s.evictions, s.preemptions, s.kv_blocked_requests);
  const auto counts = run.engine.scheduler->counts();
  EXPECT_GT(counts.preemptions, 0u);
  EXPECT_GT(counts.evictions, 0u);
  EXPECT_GT(counts.hit_tokens, 0u);
  return text;
}

TEST(VirtualRun, TenThousandRequestsTwiceAreByteIdentical) {
  const std::string first = records_of(3);
  EXPECT_TRUE(first == records_of(3)) << "same seeds, different records";
  EXPECT_FALSE(first == records_of(4)) << "the seed has no effect";
}

TEST(ConstExecutor, TokensAreAFunctionOfSequenceAndPositionAndNeverEndAText) {
  ConstExecutor executor({.prefill_ns_per_token = 3, .decode_ns = 100}, 4, {0, 2});
  const std::vector<TokenId> tokens = {1, 1, 1};
  sched::StepPlan plan;
  for (std::uint32_t position = 0; position < 64; ++position)
    plan.rows.push_back({.seq = SeqId{7}, .first_position = position, .tokens = tokens, .samples = position != 5});
  plan.num_prefill_tokens = 11;
  const auto first = executor.execute(plan, 0).tokens;
  EXPECT_EQ(executor.execute(plan, 999).tokens, first);
  EXPECT_EQ(first[5], kNoToken);
  std::map<TokenId, int> seen;
  for (const TokenId token : first) ++seen[token];
  seen.erase(kNoToken);
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen.contains(1) && seen.contains(3));
  EXPECT_EQ(executor.execute(plan, 0).duration_ns, 33);
  plan.num_decode_sequences = 5;
  EXPECT_EQ(executor.execute(plan, 0).duration_ns, 133);
}

TEST(ConstExecutor, CostsAreCheckedAndExact) {
  EXPECT_EQ(const_costs_from_us(0.125, 900)->prefill_ns_per_token, 125);
  EXPECT_EQ(const_costs_from_us(0.125, 900)->decode_ns, 900'000);
  EXPECT_EQ(const_costs_from_us(-1, 1).error().param, "sim-prefill-us-per-token");
  EXPECT_EQ(const_costs_from_us(1, INFINITY).error().param, "sim-decode-us");
}

TEST(ConstEngine, AConfigurationThatCannotWorkIsRefused) {
  VirtualLoop loop;
  EXPECT_FALSE(make_const_engine(loop, {}, {}, nullptr));
}

}  // namespace
}  // namespace tokenstone::sim
