#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <map>

#include "sched/scheduler_test_support.h"

namespace tokenstone::sched {
namespace {

TEST(SchedulerConfig, PresetsOtherThanChunkedAreNotBuiltYet) {
  ASSERT_TRUE(preset("chunked"));
  for (const auto* name : {"naive", "kv", "static", "continuous", "paged", "prefix", "ngram"}) {
    const auto refused = preset(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find("not built yet"), std::string::npos);
  }
  const auto unknown = preset("chunkd");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("chunked"), std::string::npos);
}

TEST(SchedulerConfig, WhatCannotWorkIsRefusedByName) {
  const auto param_of = [](auto change) {
    SchedulerConfig config = small_config(8);
    change(config);
    const Status status = validate(config);
    return status ? std::string("accepted") : status.error().param;
  };
  EXPECT_EQ(param_of([](auto&) {}), "accepted");
  EXPECT_EQ(param_of([](auto& c) { c.num_blocks = 0; }), "kv-cache-memory");
  EXPECT_EQ(param_of([](auto& c) { c.block_size = 0; }), "block-size");
  EXPECT_EQ(param_of([](auto& c) { c.max_num_seqs = 0; }), "max-num-seqs");
  EXPECT_EQ(param_of([](auto& c) { c.max_num_batched_tokens = 0; }), "max-num-batched-tokens");
  EXPECT_EQ(param_of([](auto& c) { c.max_num_batched_tokens = 7; }), "max-num-batched-tokens");
  EXPECT_EQ(param_of([](auto& c) { c.max_model_len = 1; }), "max-model-len");
  EXPECT_EQ(param_of([](auto& c) { c.enable_chunked_prefill = false; }), "enable-chunked-prefill");
  EXPECT_EQ(param_of([](auto& c) { c.proposer = Proposer::ngram; }), "speculative");
  EXPECT_EQ(param_of([](auto& c) { c.kv_layout = KvLayout::contiguous; }), "kv-layout");
  EXPECT_EQ(param_of([](auto& c) { c.batching = Batching::fixed; }), "batching");
}

TEST(Scheduler, DecodesComeFirstThenPromptsEachInOrderOfAdmission) {
  SchedulerConfig config = small_config(64);
  config.max_num_batched_tokens = 10;
  config.long_prefill_token_threshold = 6;
  Engine engine(config);
  engine.add(request(1, run_of(1000, 20)));  // 6 now, the rest later
  engine.add(request(2, run_of(2000, 3)));   // whole
  engine.step();
  engine.add(request(3, run_of(3000, 9)));
  const StepPlan& plan = engine.plan();
  ASSERT_EQ(plan.rows.size(), 3u);
  EXPECT_EQ(plan.rows[0].seq, SeqId{2});
  EXPECT_FALSE(plan.rows[0].prefill);
  EXPECT_EQ(plan.rows[0].first_position, 3u);
  EXPECT_EQ(plan.rows[0].tokens[0], 900) << "the token sampled last, at the first position not computed";
  EXPECT_EQ(plan.rows[1].seq, SeqId{1});
  EXPECT_EQ(plan.rows[1].tokens.size(), 6u);
  EXPECT_FALSE(plan.rows[1].samples);
  EXPECT_EQ(plan.rows[2].seq, SeqId{3});
  EXPECT_EQ(plan.rows[2].tokens.size(), 3u) << "what the budget leaves";
  EXPECT_EQ(plan.num_prefill_tokens, 9u);
  EXPECT_EQ(plan.num_decode_sequences, 1u);
  EXPECT_EQ(plan.num_batched_tokens, 10u);
  EXPECT_EQ(plan.chunked, 2u);
  EXPECT_EQ(plan.running_queue_len, 3u);
  EXPECT_EQ(plan.prefilling_queue_len, 2u);
  EXPECT_EQ(plan.waiting_queue_len, 0u);
}

TEST(Scheduler, SlotsAreCounted) {
  Engine engine(small_config(16));
  engine.add(request(1, run_of(1000, 5)));
  engine.add(request(2, run_of(2000, 4)));
  const StepPlan& plan = engine.plan();
  EXPECT_EQ(plan.blocks_active, 3u);
  EXPECT_EQ(plan.allocated_slots, 12u);
  EXPECT_EQ(plan.wasted_slots, 3u);
  EXPECT_EQ(plan.blocks_active + plan.blocks_cached_idle + plan.blocks_free, 16u);
}

TEST(Scheduler, ShortPromptsShareTheBudgetWithALongOne) {  // SCH-06
  SchedulerConfig config = small_config(1024, 16);
  config.max_num_batched_tokens = 64;
  config.long_prefill_token_threshold = 32;
  Engine engine(config);
  engine.add(request(1, run_of(1, 10'000)));
  engine.add(request(2, run_of(20'000, 50)));
  int steps = 0;
  for (bool answered = false; !answered; ++steps)
    for (const SeqOutput& output : engine.step()) answered = answered || output.seq == SeqId{2};
  EXPECT_EQ(steps, 2) << "32 of 50 tokens beside the long prompt's 32, then the rest";
}

TEST(Scheduler, TheLastAdmittedIsPreemptedAndGoesToTheFront) {
  Engine engine(small_config(6));
  engine.add(request(1, run_of(1000, 8)));
  engine.add(request(2, run_of(2000, 8)));
  engine.add(request(3, run_of(3000, 8)));
  engine.step();  // six blocks, all full
  engine.add(request(4, run_of(4000, 4)));
  const StepPlan& plan = engine.plan();
  ASSERT_EQ(plan.preempted.size(), 1u);
  EXPECT_EQ(plan.preempted[0], SeqId{3});
  EXPECT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.waiting_queue_len, 2u);
  EXPECT_EQ(plan.kv_blocked_requests, 2u);
  engine.apply(plan);
  const auto ended = engine.drain();
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < ended.size(); ++i) place[ended[i].seq.value] = i;
  EXPECT_LT(place[3], place[4]) << "the preempted one was before the newcomer";
}

TEST(Scheduler, SeveralVictimsKeepTheirOrder) {
  SchedulerConfig config = small_config(8);
  config.max_num_batched_tokens = 8;
  Engine engine(config);
  for (std::uint64_t id = 1; id <= 8; ++id) engine.add(request(id, run_of(static_cast<TokenId>(id) * 1000, 4), 20));
  std::vector<std::uint64_t> finished;
  for (const SeqOutput& output : engine.drain()) {
    finished.push_back(output.seq.value);
    EXPECT_EQ(output.counters.output_tokens, 20u) << output.seq.value;
    EXPECT_EQ(output.reason, FinishReason::length);
  }
  EXPECT_EQ(finished, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

// SCH-05: tokens are a function of the position, so a preempted sequence must give what it gives undisturbed.
TEST(Scheduler, PreemptionChangesNoOutput) {
  const auto answer = [](std::uint32_t num_blocks) {
    SchedulerConfig config = small_config(64);
    config.num_blocks = num_blocks;
    config.max_model_len = 24;
    Engine engine(config);
    engine.choose = [](const PlanRow& row) {
      return static_cast<TokenId>(100 * row.seq.value + row.first_position + row.tokens.size());
    };
    for (std::uint64_t id = 1; id <= 4; ++id) engine.add(request(id, run_of(static_cast<TokenId>(id) * 1000, 6), 12));
    std::map<std::uint64_t, std::vector<TokenId>> texts;
    while (!engine.scheduler.idle())
      for (const SeqOutput& output : engine.step())
        texts[output.seq.value].insert(texts[output.seq.value].end(), output.tokens.begin(), output.tokens.end());
    return std::pair(texts, engine.scheduler.counts().preemptions);
  };
  const auto [undisturbed, none] = answer(64);
  const auto [preempted, some] = answer(7);
  EXPECT_EQ(none, 0u);
  EXPECT_GT(some, 0u);
  EXPECT_EQ(undisturbed, preempted);
}

TEST(Scheduler, ALoneSequenceThatOutgrowsThePoolEndsWithLength) {  // SCH-12
  SchedulerConfig config = small_config(3);
  config.max_model_len = 1000;
  Engine engine(config);
  NewRequest r = request(1, run_of(1000, 5), 900);
  r.sampling.ignore_eos = true;
  engine.add(std::move(r));
  const auto ended = engine.drain();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].reason, FinishReason::length);
  EXPECT_EQ(ended[0].counters.output_tokens, 8u) << "12 slots and a last token that needs none";
  EXPECT_EQ(ended[0].counters.preemptions, 0u);
}

TEST(Scheduler, OneThatGrowsToThePoolsSizeLetsTheOthersRunFirst) {  // SCH-03, SCH-13
  SchedulerConfig config = small_config(10);
  config.max_model_len = 1000;
  Engine engine(config);
  engine.add(request(1, run_of(1, 36), 500));
  for (std::uint64_t id = 2; id <= 11; ++id) engine.add(request(id, run_of(static_cast<TokenId>(id) * 1000, 2), 2));
  const auto ended = engine.drain();
  EXPECT_EQ(ended.size(), 11u);
}

// SCH-14: decodes take the block that the next chunk of a prompt would need.
TEST(Scheduler, APromptWhoseNextChunkFindsNoBlockIsPutBackCleanly) {
  SchedulerConfig config = small_config(8);
  config.max_num_batched_tokens = 8;
  config.long_prefill_token_threshold = 4;
  Engine engine(config);
  engine.add(request(1, run_of(1000, 4), 12));
  engine.step();
  engine.step();  // two blocks held
  engine.add(request(2, run_of(2000, 23), 1));
  bool put_back = false;
  std::vector<SeqOutput> ended;
  while (!engine.scheduler.idle()) {
    const StepPlan& plan = engine.plan();
    if (!plan.preempted.empty()) {
      put_back = true;
      EXPECT_EQ(plan.preempted[0], SeqId{2});
      EXPECT_TRUE(engine.scheduler.blocks_of(SeqId{2}).empty());
    }
    for (const SeqOutput& output : engine.apply(plan))
      if (output.finished()) ended.push_back(output);
    EXPECT_EQ(engine.scheduler.pool().audit(), "");
  }
  EXPECT_TRUE(put_back);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[1].counters.output_tokens, 1u);
}

TEST(Scheduler, APromptIsNotAdmittedIntoBlocksThatAnotherWillNeed) {
  SchedulerConfig config = small_config(10);
  config.max_num_batched_tokens = 8;
  config.long_prefill_token_threshold = 4;
  Engine engine(config);
  engine.add(request(1, run_of(1000, 24), 1));
  engine.add(request(2, run_of(2000, 20), 1));  // 6 + 5 blocks of 10
  const StepPlan& plan = engine.plan();
  EXPECT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.kv_blocked_requests, 1u);
  engine.apply(plan);
  EXPECT_EQ(engine.drain().size(), 2u);
  EXPECT_EQ(engine.scheduler.counts().preemptions, 0u);
}

TEST(Scheduler, AHugeMaxTokensReservesNothing) {  // SCH-08
  Engine engine(small_config(16));
  engine.add(request(1, run_of(1000, 4), 100'000));
  for (std::uint64_t id = 2; id <= 5; ++id) engine.add(request(id, run_of(static_cast<TokenId>(id) * 1000, 4), 5));
  EXPECT_EQ(engine.plan().rows.size(), 5u);
}

SeqOutput last_output(SamplingParams sampling, std::vector<TokenId> answers, std::uint32_t max_model_len = 64) {
  SchedulerConfig config = small_config(16);
  config.max_model_len = max_model_len;
  Engine engine(config);
  engine.choose = [&](const PlanRow& row) { return answers.at(row.num_output_tokens); };
  engine.add({.seq = SeqId{1}, .prompt = run_of(1000, 4), .sampling = std::move(sampling)});
  for (;;)
    for (SeqOutput output : engine.step())
      if (output.finished()) {
        output.tokens =
            output.tokens.empty() ? std::span<const TokenId>{} : std::span<const TokenId>(&answers.back(), 1);
        return output;
      }
}

TEST(Stops, EndOfTextCountsButIsNotHandedOut) {
  const SeqOutput output = last_output({.max_tokens = 10}, {5, 6, 0});
  EXPECT_EQ(output.reason, FinishReason::stop);
  EXPECT_EQ(output.counters.output_tokens, 3u);
  EXPECT_TRUE(output.tokens.empty());
}

TEST(Stops, IgnoreEosGoesOn) {
  const SeqOutput output = last_output({.max_tokens = 4, .ignore_eos = true}, {5, 0, 0, 7});
  EXPECT_EQ(output.reason, FinishReason::length);
  EXPECT_EQ(output.counters.output_tokens, 4u);
  EXPECT_EQ(output.tokens.size(), 1u);
}

TEST(Stops, MinTokensHoldsEndOfTextAndStopIdsBack) {
  EXPECT_EQ(last_output({.max_tokens = 10, .min_tokens = 3}, {0, 0, 0}).counters.output_tokens, 3u);
  EXPECT_EQ(last_output({.max_tokens = 10, .min_tokens = 2, .stop_token_ids = {8}}, {8, 8}).counters.output_tokens, 2u);
}

TEST(Stops, StopTokenIdsEvenWithIgnoreEos) {
  const SeqOutput output = last_output({.max_tokens = 10, .ignore_eos = true, .stop_token_ids = {7, 8}}, {5, 8});
  EXPECT_EQ(output.reason, FinishReason::stop);
  EXPECT_TRUE(output.tokens.empty());
}

TEST(Stops, ContextEndsWithLength) {
  const SeqOutput output = last_output({.max_tokens = 10}, {5, 5, 5}, 7);
  EXPECT_EQ(output.reason, FinishReason::length);
  EXPECT_EQ(output.counters.output_tokens, 3u);
}

TEST(Scheduler, APromptThatLeavesNoRoomForAnAnswerIsRefused) {
  SchedulerConfig config = small_config(16);
  config.max_model_len = 10;
  Scheduler scheduler(config);
  EXPECT_TRUE(scheduler.check_fits(9));
  const Status refused = scheduler.check_fits(10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::too_large);
  EXPECT_FALSE(scheduler.add(request(1, {})));
}

TEST(Scheduler, CountersTellASequencesLife) {
  SchedulerConfig config = small_config(16);
  config.max_num_batched_tokens = 8;
  Engine engine(config);
  engine.now = 100;
  NewRequest r = request(1, run_of(1000, 20), 3);
  r.arrival = 42;
  engine.add(std::move(r));
  const auto ended = engine.drain();
  EXPECT_EQ(ended[0].counters.arrival, 42);
  EXPECT_EQ(ended[0].counters.first_scheduled, 100);
  EXPECT_EQ(ended[0].counters.chunks, 3u) << "8 + 8 + 4";
  EXPECT_EQ(ended[0].counters.prompt_tokens, 20u);
  EXPECT_EQ(engine.scheduler.counts().steps, 5u);
}

TEST(ProgressWatch, IsStuckAfterMoreStepsThanTheLongestPromptNeeds) {  // SCH-11
  ProgressWatch watch(100, 10);
  for (std::uint64_t i = 0; i < watch.limit(); ++i) watch.on_step();
  EXPECT_FALSE(watch.stuck());
  watch.on_step();
  EXPECT_TRUE(watch.stuck());
  watch.on_progress();
  EXPECT_FALSE(watch.stuck());
  EXPECT_GE(watch.limit(), 10u);
}

TEST(SchedulerDeathTest, PlansAndResultsAlternate) {
  Engine engine(small_config(8));
  EXPECT_DEATH(engine.scheduler.apply({}), "no plan to apply");
  engine.add(request(1, run_of(1000, 4)));
  engine.plan();
  EXPECT_DEATH(engine.plan(), "was not applied");
  EXPECT_DEATH(engine.scheduler.apply({}), "one token per row");
}

}  // namespace
}  // namespace tokenstone::sched
