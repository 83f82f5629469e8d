#include "sched/block_pool.h"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "base/check.h"

namespace tokenstone::sched {

Prefix root_prefix(std::uint64_t cache_salt) {
  return {.hash = hash_root(cache_salt), .identity = cache_salt, .root = true};
}

BlockPool::BlockPool(std::uint32_t num_blocks, std::uint32_t block_size)
    : num_blocks_(num_blocks), block_size_(block_size), available_(num_blocks), meta_(std::size_t{num_blocks} + 1) {
  TS_CHECK(num_blocks > 0 && block_size > 0, "a pool needs blocks and blocks need slots");
  tokens_.resize(std::size_t{num_blocks} * block_size, kNoToken);
  buckets_.assign(std::bit_ceil(std::size_t{num_blocks} * 2), kNone);
  meta_[num_blocks].prev = meta_[num_blocks].next = num_blocks;
  for (std::uint32_t block = 0; block < num_blocks; ++block) link_before(block, num_blocks);
}

const BlockPool::Meta& BlockPool::meta(BlockId block) const {
  TS_CHECK(block.value < num_blocks_, "a block id of this pool");
  return meta_[block.value];
}

std::optional<BlockId> BlockPool::find(const Prefix& parent, Hash128 hash, std::span<const TokenId> tokens) const {
  for (std::uint32_t b = buckets_[hash.low & (buckets_.size() - 1)]; b != kNone; b = meta_[b].bucket_next) {
    const Meta& m = meta_[b];
    if (m.hash == hash && m.parent_identity == parent.identity && m.parent_is_root == parent.root &&
        std::ranges::equal(tokens_of(b), tokens))
      return BlockId{b};
  }
  return std::nullopt;
}

Prefix BlockPool::prefix_of(BlockId block) const {
  const Meta& m = meta(block);
  TS_CHECK(m.cached, "only a cached block has a known content");
  return {.hash = m.hash, .identity = m.identity, .root = false};
}

BlockId BlockPool::allocate() {
  TS_CHECK(available_ > 0, "no block is available");
  const std::uint32_t block = meta_[num_blocks_].next;
  unlink(block);
  --available_;
  if (meta_[block].cached) {
    --cached_idle_;
    ++evictions_;
    drop_content(block);
  }
  meta_[block].refs = 1;
  return BlockId{block};
}

void BlockPool::acquire(BlockId block) {
  Meta& m = meta(block);
  TS_CHECK(m.cached, "only cached blocks are shared");
  if (m.refs++ > 0) return;
  unlink(block.value);
  --available_;
  --cached_idle_;
}

void BlockPool::release(std::span<const BlockId> table) {
  for (std::size_t i = table.size(); i-- > 0;) {
    Meta& m = meta(table[i]);
    TS_CHECK(m.refs > 0, "a block was freed twice");
    if (--m.refs > 0) continue;
    ++available_;
    if (m.cached) ++cached_idle_;
    // Without content: first to be taken. With content: last.
    link_before(table[i].value, m.cached ? num_blocks_ : meta_[num_blocks_].next);
  }
}

Prefix BlockPool::publish(BlockId block, const Prefix& parent, Hash128 hash, std::span<const TokenId> tokens) {
  Meta& m = meta(block);
  TS_CHECK(m.refs > 0 && !m.cached, "only a held block without content is published");
  TS_CHECK(tokens.size() == block_size_, "only full blocks are published");
  const std::optional<BlockId> twin = find(parent, hash, tokens);
  m.identity = twin ? meta(*twin).identity : ++next_identity_;
  m.parent_identity = parent.identity;
  m.parent_is_root = parent.root;
  m.hash = hash;
  m.cached = true;
  std::ranges::copy(tokens, tokens_of(block.value).begin());
  std::uint32_t& head = bucket(hash);
  m.bucket_prev = kNone;
  m.bucket_next = head;
  if (head != kNone) meta_[head].bucket_prev = block.value;
  head = block.value;
  return {.hash = hash, .identity = m.identity, .root = false};
}

bool BlockPool::reset() {
  if (num_active() > 0) return false;
  for (std::uint32_t block = 0; block < num_blocks_; ++block)
    if (meta_[block].cached) drop_content(block);
  cached_idle_ = 0;
  return true;
}

std::vector<BlockId> BlockPool::free_order() const {
  std::vector<BlockId> order;
  for (std::uint32_t b = meta_[num_blocks_].next; b != num_blocks_; b = meta_[b].next) order.push_back(BlockId{b});
  return order;
}

void BlockPool::link_before(std::uint32_t block, std::uint32_t at) {
  const std::uint32_t before = meta_[at].prev;
  meta_[block].prev = before;
  meta_[block].next = at;
  meta_[before].next = block;
  meta_[at].prev = block;
}

void BlockPool::unlink(std::uint32_t block) {
  Meta& m = meta_[block];
  meta_[m.prev].next = m.next;
  meta_[m.next].prev = m.prev;
  m.prev = m.next = kNone;
}

void BlockPool::drop_content(std::uint32_t block) {
  Meta& m = meta_[block];
  if (m.bucket_next != kNone) meta_[m.bucket_next].bucket_prev = m.bucket_prev;
  if (m.bucket_prev != kNone)
    meta_[m.bucket_prev].bucket_next = m.bucket_next;
  else
    bucket(m.hash) = m.bucket_next;
  m.bucket_prev = m.bucket_next = kNone;
  m.cached = false;
}

std::string BlockPool::audit() const {
  std::string problem = audit_free_list();
  return problem.empty() ? audit_index() : problem;
}

std::string BlockPool::audit_free_list() const {
  std::uint32_t listed = 0, idle = 0;
  for (std::uint32_t b = meta_[num_blocks_].next; b != num_blocks_; b = meta_[b].next) {
    if (b > num_blocks_ || ++listed > num_blocks_) return "the free list leaves the pool or has a loop";
    if (meta_[meta_[b].next].prev != b) return fmt::format("free list links around block {} disagree", b);
    if (meta_[b].refs != 0) return fmt::format("block {} is free and held {} times", b, meta_[b].refs);
    if (meta_[b].cached) ++idle;
  }
  if (listed != available_) return fmt::format("{} blocks are listed as free, {} counted", listed, available_);
  if (idle != cached_idle_) return fmt::format("{} free blocks have content, {} counted", idle, cached_idle_);
  const auto held = std::count_if(meta_.begin(), meta_.end() - 1, [](const Meta& m) { return m.refs > 0; });
  if (held + listed != num_blocks_) return fmt::format("{} held and {} free of {} blocks", held, listed, num_blocks_);
  return {};
}

std::string BlockPool::audit_index() const {
  std::uint32_t indexed = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    std::uint32_t before = kNone;
    for (std::uint32_t b = buckets_[i]; b != kNone; before = b, b = meta_[b].bucket_next) {
      if (++indexed > num_blocks_) return "a bucket has a loop";
      if (!meta_[b].cached) return fmt::format("block {} is indexed and has no content", b);
      if ((meta_[b].hash.low & (buckets_.size() - 1)) != i || meta_[b].bucket_prev != before)
        return fmt::format("block {} stands in a wrong place of the index", b);
    }
  }
  std::set<std::uint64_t> identities;
  for (std::uint32_t b = 0; b < num_blocks_; ++b)
    if (meta_[b].cached) identities.insert(meta_[b].identity), --indexed;
  if (indexed != 0) return "a block has content and is not indexed";
  for (std::uint32_t b = 0; b < num_blocks_; ++b)
    if (meta_[b].cached && !meta_[b].parent_is_root && !identities.contains(meta_[b].parent_identity))
      return fmt::format("block {} outlived its parent", b);
  return {};
}

}  // namespace tokenstone::sched
