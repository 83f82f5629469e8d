// The prefix cache's edge cases, as the scheduler shows them; numbered after the list that the design follows
// (1 look-up, 2 full hit, 3 duplicates, 4 partial blocks, 5 counts, 6 free order, 7 LRU, 8 preemption, 9 reset,
// 10 statistics, 11 aborts, 12 block border, 13 livelock).
#include <gtest/gtest.h>

#include "sched/scheduler_test_support.h"

namespace tokenstone::sched {
namespace {

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Runs a request for one token and lets it end; the tokens that it found in the cache.
std::uint32_t cached_tokens_of(Engine& engine, std::uint64_t id, std::vector<TokenId> prompt, std::uint64_t salt = 0) {
  NewRequest r = request(id, std::move(prompt), 1);
  r.cache_salt = salt;
  engine.add(std::move(r));
  return engine.drain().back().counters.cached_tokens;
}

TEST(PrefixCache, Case01LookupStopsAtTheFirstMiss) {
  Engine engine(small_config(16));
  cached_tokens_of(engine, 1, run_of(1000, 16));
  EXPECT_EQ(cached_tokens_of(engine, 2, joined(run_of(1000, 8), run_of(5000, 8))), 8u);
  // The second block differs; the third is equal again but has another history.
  auto prompt = run_of(1000, 16);
  prompt[5] = 77;
  EXPECT_EQ(cached_tokens_of(engine, 3, prompt), 4u);
}

TEST(PrefixCache, Case02AFullHitRecomputesTheLastBlockIntoAPrivateOne) {  // PFX-04
  Engine engine(small_config(16));
  cached_tokens_of(engine, 1, run_of(1000, 8));
  engine.add(request(2, run_of(1000, 8), 2));
  const StepPlan& plan = engine.plan();
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].first_position, 4u);
  EXPECT_EQ(plan.rows[0].tokens.size(), 4u);
  EXPECT_TRUE(plan.rows[0].samples);
  EXPECT_EQ(values(plan.rows[0].blocks)[0], 0u) << "the first block is shared";
  EXPECT_NE(values(plan.rows[0].blocks)[1], 1u) << "the last one is new";
  engine.apply(plan);
  engine.drain();
  EXPECT_EQ(engine.scheduler.pool().audit(), "");
}

TEST(PrefixCache, Case02AnUnalignedFullHitRecomputesItsTailOnly) {
  Engine engine(small_config(16));
  cached_tokens_of(engine, 1, run_of(1000, 9));
  EXPECT_EQ(cached_tokens_of(engine, 2, run_of(1000, 9)), 8u);
}

TEST(PrefixCache, Case03DuplicatesAreNotMergedAndGoAwayByEviction) {
  Engine engine(small_config(6));
  // Both in one step: blocks are published after the step, so they share nothing.
  engine.add(request(1, run_of(1000, 8), 1));
  engine.add(request(2, run_of(1000, 8), 1));
  const StepPlan& plan = engine.plan();
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(values(plan.rows[0].blocks), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(values(plan.rows[1].blocks), (std::vector<std::uint32_t>{2, 3}));
  engine.apply(plan);
  EXPECT_EQ(engine.scheduler.pool().num_cached_idle(), 4u);
  cached_tokens_of(engine, 3, run_of(5000, 16));
  EXPECT_EQ(engine.scheduler.pool().evictions(), 2u);
  EXPECT_EQ(cached_tokens_of(engine, 4, run_of(1000, 9)), 8u) << "one copy is left and whole";
}

TEST(PrefixCache, Case04PartialBlocksAreNeverShared) {  // PFX-15
  SchedulerConfig config = small_config(16, 16);
  Engine engine(config);
  cached_tokens_of(engine, 1, run_of(1000, 20));
  EXPECT_EQ(engine.scheduler.pool().num_cached_idle(), 1u);
  EXPECT_EQ(cached_tokens_of(engine, 2, joined(run_of(1000, 20), run_of(5000, 20))), 16u);
  EXPECT_EQ(cached_tokens_of(engine, 3, joined(run_of(1000, 18), run_of(7000, 20))), 16u) << "diverges inside a block";
}

TEST(PrefixCache, Case05CountsAreHoldersAndIdleCacheIsAvailable) {
  Engine engine(small_config(8));
  cached_tokens_of(engine, 1, run_of(1000, 8));
  EXPECT_EQ(engine.scheduler.pool().num_available(), 8u);
  EXPECT_EQ(engine.scheduler.pool().num_cached_idle(), 2u);
  engine.add(request(2, joined(run_of(1000, 8), {1}), 5));
  engine.add(request(3, joined(run_of(1000, 8), {2}), 5));
  engine.step();
  EXPECT_EQ(engine.scheduler.pool().ref_count(BlockId{0}), 2u);
  EXPECT_EQ(engine.scheduler.pool().ref_count(BlockId{1}), 2u);
  const SchedulerCounts counts = engine.scheduler.counts();
  EXPECT_EQ(counts.blocks_active, 4u);
  EXPECT_EQ(counts.blocks_cached_idle, 0u);
  EXPECT_EQ(counts.blocks_free, 4u);
}

// Two requests share blocks 1 2 3 and have the partial tails 4 and 5 of ten blocks; both end. (Ids here count from 0.)
TEST(PrefixCache, Case06FreeOrderGolden) {
  Engine engine(small_config(10));
  engine.add(request(1, joined(run_of(1000, 12), {1})));
  engine.step();
  engine.add(request(2, joined(run_of(1000, 12), {2})));
  engine.step();
  ASSERT_EQ(values(engine.scheduler.blocks_of(SeqId{1})), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  ASSERT_EQ(values(engine.scheduler.blocks_of(SeqId{2})), (std::vector<std::uint32_t>{0, 1, 2, 4}));
  engine.scheduler.abort(SeqId{1});
  engine.scheduler.abort(SeqId{2});
  auto order = values(engine.scheduler.pool().free_order());
  for (auto& id : order) ++id;
  EXPECT_EQ(order, (std::vector<std::uint32_t>{5, 4, 6, 7, 8, 9, 10, 3, 2, 1}));
}

TEST(PrefixCache, Case07LeastRecentlyReleasedGoesFirstAndTailsBeforeHeads) {
  Engine engine(small_config(6));
  cached_tokens_of(engine, 1, run_of(1000, 8));
  cached_tokens_of(engine, 2, run_of(5000, 8));
  cached_tokens_of(engine, 3, run_of(1000, 9));  // uses the first again
  // Four blocks idle, two free: a prompt of three blocks evicts one, the tail of the one released longest ago.
  cached_tokens_of(engine, 4, run_of(9000, 9));
  EXPECT_EQ(engine.scheduler.pool().evictions(), 1u);
  EXPECT_EQ(cached_tokens_of(engine, 5, run_of(1000, 9)), 8u);
  EXPECT_EQ(cached_tokens_of(engine, 6, run_of(5000, 9)), 4u) << "its head has outlived its tail";
}

TEST(PrefixCache, Case08APreemptedSequenceFindsItsOwnBlocksAgain) {
  Engine engine(small_config(6));
  engine.add(request(1, run_of(1000, 8), 9));
  engine.add(request(2, run_of(5000, 8), 9));
  std::uint32_t recomputed_from = 0;
  std::vector<SeqOutput> ended;
  while (!engine.scheduler.idle()) {
    const StepPlan& plan = engine.plan();
    for (const PlanRow& row : plan.rows)
      if (row.seq == SeqId{2} && row.prefill && row.num_output_tokens > 0) recomputed_from = row.first_position;
    for (const SeqOutput& output : engine.apply(plan))
      if (output.finished()) ended.push_back(output);
  }
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[1].seq, SeqId{2});
  EXPECT_EQ(ended[1].counters.preemptions, 1u);
  EXPECT_EQ(ended[1].counters.output_tokens, 9u);
  EXPECT_GT(recomputed_from, 0u) << "part of it was still in the cache";
}

TEST(PrefixCache, Case09ResetSucceedsOnlyWhenNothingIsInUse) {
  Engine engine(small_config(8));
  engine.add(request(1, run_of(1000, 8), 2));
  engine.step();
  EXPECT_FALSE(engine.scheduler.reset_prefix_cache());
  engine.drain();
  EXPECT_TRUE(engine.scheduler.reset_prefix_cache());
  EXPECT_EQ(cached_tokens_of(engine, 2, run_of(1000, 9)), 0u);
}

TEST(PrefixCache, Case10StatisticsCountFirstLookupsOnly) {  // PFX-11
  Engine engine(small_config(6));
  engine.add(request(1, run_of(1000, 8), 9));
  engine.add(request(2, run_of(5000, 8), 9));
  engine.drain();
  const SchedulerCounts counts = engine.scheduler.counts();
  EXPECT_EQ(counts.preemptions, 1u);
  EXPECT_EQ(counts.query_tokens, 16u);
  EXPECT_EQ(counts.hit_tokens, 0u) << "what a preempted sequence finds of its own is no hit";
}

TEST(PrefixCache, Case10WithoutTheCacheNothingIsLookedUp) {
  SchedulerConfig config = small_config(8);
  config.enable_prefix_caching = false;
  Engine engine(config);
  EXPECT_EQ(cached_tokens_of(engine, 1, run_of(1000, 8)), 0u);
  EXPECT_EQ(cached_tokens_of(engine, 2, run_of(1000, 9)), 0u);
  EXPECT_EQ(engine.scheduler.counts().query_tokens, 0u);
  EXPECT_EQ(engine.scheduler.pool().num_cached_idle(), 0u);
}

TEST(PrefixCache, Case11AbortsInEveryStateLeaveNothingBehind) {  // PFX-12
  Engine engine(small_config(8));
  SchedulerConfig one = small_config(8);
  one.max_num_seqs = 1;
  Engine single(one);
  single.add(request(1, run_of(1000, 8)));
  single.step();
  single.add(request(2, run_of(1000, 8)));
  single.step();  // looks the second up, does not admit it
  EXPECT_TRUE(single.scheduler.abort(SeqId{2})) << "waiting";
  EXPECT_TRUE(single.scheduler.abort(SeqId{1})) << "running";
  EXPECT_FALSE(single.scheduler.abort(SeqId{1})) << "double";
  EXPECT_FALSE(single.scheduler.abort(SeqId{9})) << "unknown";
  EXPECT_EQ(single.scheduler.pool().num_active(), 0u);
  EXPECT_EQ(single.scheduler.pool().audit(), "");

  engine.add(request(1, run_of(1000, 8)));
  const StepPlan& plan = engine.plan();
  EXPECT_TRUE(engine.scheduler.abort(SeqId{1})) << "in flight";
  EXPECT_FALSE(engine.scheduler.abort(SeqId{1})) << "double, in flight";
  EXPECT_EQ(plan.rows[0].tokens[7], 1007) << "the plan's spans hold until it is applied";
  EXPECT_TRUE(engine.apply(plan).empty()) << "no output after an abort";
  EXPECT_EQ(engine.scheduler.pool().num_active(), 0u);
  EXPECT_TRUE(engine.scheduler.idle());
}

TEST(PrefixCache, Case11ADuplicateIdIsRefused) {
  Engine engine(small_config(8));
  engine.add(request(1, run_of(1000, 8)));
  EXPECT_FALSE(engine.scheduler.add(request(1, run_of(1000, 4))));
  engine.step();
  EXPECT_FALSE(engine.scheduler.add(request(1, run_of(1000, 4))));
  EXPECT_EQ(engine.scheduler.counts().running, 1u);
  EXPECT_EQ(engine.scheduler.counts().waiting, 0u);
}

TEST(PrefixCache, Case12AFullBlockNeedsTheNextOneForTheNextToken) {
  Engine engine(small_config(8));
  engine.add(request(1, run_of(1000, 4)));
  engine.step();
  EXPECT_EQ(engine.scheduler.blocks_of(SeqId{1}).size(), 1u) << "4 tokens computed, the sampled one is not";
  engine.step();
  EXPECT_EQ(engine.scheduler.blocks_of(SeqId{1}).size(), 2u);
  for (int i = 0; i < 3; ++i) engine.step();
  EXPECT_EQ(engine.scheduler.blocks_of(SeqId{1}).size(), 2u) << "8 tokens computed";
  engine.step();
  EXPECT_EQ(engine.scheduler.blocks_of(SeqId{1}).size(), 3u);
}

TEST(PrefixCache, Case13WhatCanNeverFitIsRefusedWithBothNumbers) {  // SCH-01
  SchedulerConfig config = small_config(4);
  config.max_model_len = 100;
  Engine engine(config);
  const Status refused = engine.scheduler.add(request(1, run_of(1000, 17)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::too_large);
  EXPECT_NE(refused.error().message.find("17"), std::string::npos);
  EXPECT_NE(refused.error().message.find("16"), std::string::npos);
  engine.add(request(2, run_of(1000, 16)));
  const auto ended = engine.drain();
  ASSERT_EQ(ended.size(), 1u) << "one that just fits gives the one token that it can";
  EXPECT_EQ(ended[0].counters.output_tokens, 1u);
  EXPECT_EQ(ended[0].reason, FinishReason::length);
}

TEST(PrefixCache, SaltsShareNothing) {
  Engine engine(small_config(16));
  cached_tokens_of(engine, 1, run_of(1000, 8), 1);
  EXPECT_EQ(cached_tokens_of(engine, 2, run_of(1000, 9), 2), 0u);
  EXPECT_EQ(cached_tokens_of(engine, 3, run_of(1000, 9), 1), 8u);
}

TEST(PrefixCache, CollidingHashesGiveNoForeignData) {  // PFX-01, whole path
  SchedulerConfig config = small_config(16);
  config.block_hash = [](Hash128, std::span<const TokenId>) { return Hash128{1, 1}; };
  Engine engine(config);
  cached_tokens_of(engine, 1, run_of(1000, 8));
  EXPECT_EQ(cached_tokens_of(engine, 2, run_of(5000, 9)), 0u);
  EXPECT_EQ(cached_tokens_of(engine, 3, run_of(1000, 9)), 8u);
}

TEST(PrefixCache, AnswersAreReusedByTheNextTurn) {
  Engine engine(small_config(16));
  engine.add(request(1, run_of(1000, 8), 5));
  engine.drain();  // 12 tokens computed: 8 of prompt, 4 of answer; the fifth was only sampled
  EXPECT_EQ(cached_tokens_of(engine, 2, joined(run_of(1000, 8), {900, 901, 902, 903, 904, 1, 2, 3})), 12u);
}

}  // namespace
}  // namespace tokenstone::sched
