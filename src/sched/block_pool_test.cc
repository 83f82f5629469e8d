#include "sched/block_pool.h"

#include <gtest/gtest.h>

#include "sched/scheduler_test_support.h"

namespace tokenstone::sched {
namespace {

/// Allocates a block and publishes `tokens` in it.
struct Published {
  BlockId block;
  Prefix prefix;
};
Published publish(BlockPool& pool, const Prefix& parent, const std::vector<TokenId>& tokens) {
  const BlockId block = pool.allocate();
  return {block, pool.publish(block, parent, hash_block(parent.hash, tokens), tokens)};
}
std::optional<BlockId> find(const BlockPool& pool, const Prefix& parent, const std::vector<TokenId>& tokens) {
  return pool.find(parent, hash_block(parent.hash, tokens), tokens);
}

TEST(BlockHash, DependsOnParentTokensOrderAndSalt) {
  const std::vector<TokenId> a = {1, 2, 3, 4}, b = {1, 2, 4, 3};
  const Hash128 root = hash_root(0);
  EXPECT_EQ(hash_block(root, a), hash_block(root, a));
  EXPECT_NE(hash_block(root, a), hash_block(root, b));
  EXPECT_NE(hash_block(root, a), hash_block(hash_root(1), a));
  EXPECT_NE(hash_block(root, a), hash_block({root.low, root.high + 1}, a)) << "the parent's high half counts";
  EXPECT_NE(hash_block(root, a), hash_block({root.low + 1, root.high}, a));
}

TEST(BlockPool, HandsOutBlocksInOrderAndTakesThemBackToTheFront) {
  BlockPool pool(4, 2);
  const BlockId first = pool.allocate(), second = pool.allocate();
  EXPECT_EQ(first.value, 0u);
  EXPECT_EQ(second.value, 1u);
  const BlockId table[] = {first, second};
  pool.release(table);
  EXPECT_EQ(values(pool.free_order()), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(pool.audit(), "");
}

TEST(BlockPool, EqualTokensAfterDifferentHistoriesAreDifferentContent) {  // PFX-03
  BlockPool pool(8, 2);
  const Prefix root = root_prefix(0);
  const Published a1 = publish(pool, root, {1, 1}), a2 = publish(pool, root, {2, 2});
  const Published b1 = publish(pool, a1.prefix, {7, 7});
  EXPECT_EQ(find(pool, a1.prefix, {7, 7}), b1.block);
  EXPECT_FALSE(find(pool, a2.prefix, {7, 7}));
  EXPECT_FALSE(find(pool, root_prefix(1), {1, 1})) << "another salt";
}

// Every content has the same hash here: only tokens and parents can tell them apart (PFX-01).
TEST(BlockPool, AHashCollisionIsAMiss) {
  BlockPool pool(8, 2);
  const Hash128 same{5, 5};
  const Prefix root{.hash = same, .identity = 0, .root = true};
  const BlockId a = pool.allocate(), b = pool.allocate(), c = pool.allocate();
  const std::vector<TokenId> one = {1, 1}, two = {2, 2}, three = {3, 3};
  const Prefix pa = pool.publish(a, root, same, one);
  const Prefix pb = pool.publish(b, root, same, two);
  pool.publish(c, pa, same, three);
  EXPECT_EQ(pool.find(root, same, one), a);
  EXPECT_EQ(pool.find(root, same, two), b);
  EXPECT_FALSE(pool.find(root, same, three));
  EXPECT_EQ(pool.find(pa, same, three), c);
  EXPECT_FALSE(pool.find(pb, same, three)) << "equal tokens and hash, other parent";
  EXPECT_EQ(pool.audit(), "");
}

TEST(BlockPool, DuplicatesShareAnIdentitySoThatEitherParentLeadsToTheChild) {
  BlockPool pool(8, 2);
  const Prefix root = root_prefix(0);
  const Published first = publish(pool, root, {1, 1}), twin = publish(pool, root, {1, 1});
  EXPECT_NE(first.block, twin.block);
  EXPECT_EQ(first.prefix.identity, twin.prefix.identity);
  const Published child = publish(pool, first.prefix, {2, 2});
  EXPECT_EQ(find(pool, twin.prefix, {2, 2}), child.block);
  EXPECT_EQ(find(pool, root, {1, 1}), twin.block) << "the one published last";
}

TEST(BlockPool, AnEvictedBlockLosesItsContent) {  // PFX-05, PFX-13
  BlockPool pool(2, 2);
  const Published old = publish(pool, root_prefix(0), {1, 1});
  pool.release(std::span(&old.block, 1));
  EXPECT_EQ(pool.num_cached_idle(), 1u);
  pool.allocate();
  EXPECT_EQ(pool.allocate(), old.block);
  EXPECT_EQ(pool.evictions(), 1u);
  EXPECT_FALSE(find(pool, root_prefix(0), {1, 1}));
  EXPECT_EQ(pool.audit(), "");
}

TEST(BlockPool, AnAcquiredIdleBlockLeavesTheFreeListFromTheMiddle) {
  BlockPool pool(4, 2);
  const Published kept = publish(pool, root_prefix(0), {1, 1}), other = publish(pool, root_prefix(0), {2, 2});
  pool.release(std::span(&kept.block, 1));
  pool.release(std::span(&other.block, 1));
  EXPECT_EQ(values(pool.free_order()), (std::vector<std::uint32_t>{2, 3, 0, 1}));
  pool.acquire(kept.block);
  pool.acquire(kept.block);
  EXPECT_EQ(values(pool.free_order()), (std::vector<std::uint32_t>{2, 3, 1}));
  EXPECT_EQ(pool.ref_count(kept.block), 2u);
  pool.release(std::span(&kept.block, 1));
  EXPECT_EQ(pool.num_available(), 3u) << "one holder is left";
}

TEST(BlockPool, ResetNeedsAnUnusedPool) {
  BlockPool pool(3, 2);
  const Published a = publish(pool, root_prefix(0), {1, 1});
  EXPECT_FALSE(pool.reset());
  EXPECT_TRUE(find(pool, root_prefix(0), {1, 1}));
  pool.release(std::span(&a.block, 1));
  EXPECT_TRUE(pool.reset());
  EXPECT_FALSE(find(pool, root_prefix(0), {1, 1}));
  EXPECT_EQ(pool.num_cached_idle(), 0u);
  EXPECT_EQ(pool.num_available(), 3u);
  EXPECT_EQ(pool.audit(), "");
}

TEST(BlockPoolDeathTest, ABlockFreedTwiceIsDetected) {  // PFX-08
  BlockPool pool(3, 2);
  const BlockId block = pool.allocate();
  const BlockId twice[] = {block, block};
  EXPECT_DEATH(pool.release(twice), "freed twice");
}

TEST(BlockPoolDeathTest, MisuseStops) {
  BlockPool pool(1, 2);
  const BlockId block = pool.allocate();
  const std::vector<TokenId> partial = {1}, full = {1, 1};
  EXPECT_DEATH(pool.allocate(), "no block is available");
  EXPECT_DEATH(pool.acquire(block), "only cached blocks are shared");
  EXPECT_DEATH(pool.publish(block, root_prefix(0), {}, partial), "only full blocks");
  EXPECT_DEATH(pool.release(std::vector<BlockId>{BlockId{9}}), "a block id of this pool");
}

}  // namespace
}  // namespace tokenstone::sched
