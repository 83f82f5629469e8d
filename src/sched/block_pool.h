// The KV blocks' metadata and the prefix index over them: which block is free, who shares it, which content it holds.
//
// Worked example, 6 blocks of 4 tokens. Request A (10 tokens) takes blocks 0 1 2; after its step 0 and 1 are full and
// are published, 2 is partial and never shared. A ends: released last to first, 2 (no content) goes to the front of the
// free list, then 1, then 0 to the back: free = [2 3 4 5 1 0]. Request B with the same first 8 tokens finds 0 and 1 and
// takes them out of the middle of the list. Had others popped the whole list first, 1 would have been evicted before 0:
// tails go before heads, so a child is never found without its parent.
//
// - A block's count is the number of sequences that hold it. Cached and unused: count 0 and in the free list, so "free"
//   includes idle cache. Eviction is lazy: a popped block that still has content loses it.
// - Equal content is not merged (block tables are append-only); such duplicates share one identity.
// - Exact: a hit needs equal tokens and an equal parent identity. Identities are never reused.
// Ownership: owns all metadata. Threads: one. Cost: everything O(1) per block, no allocation after construction.
// Failure: a block freed twice, taken from an empty pool or published twice is a programmer error and stops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "sched/block_hash.h"

namespace tokenstone::sched {

/// The content of a sequence up to a block border: where it hashes to, and what it is.
struct Prefix {
  Hash128 hash;
  std::uint64_t identity = 0;  ///< equal if and only if the whole content is equal; the cache salt for a root
  bool root = true;
};

Prefix root_prefix(std::uint64_t cache_salt);

class BlockPool {
 public:
  BlockPool(std::uint32_t num_blocks, std::uint32_t block_size);

  std::uint32_t num_blocks() const { return num_blocks_; }
  std::uint32_t block_size() const { return block_size_; }
  /// Blocks that can be taken: unused ones, idle cache included.
  std::uint32_t num_available() const { return available_; }
  std::uint32_t num_cached_idle() const { return cached_idle_; }
  std::uint32_t num_active() const { return num_blocks_ - available_; }
  std::uint64_t evictions() const { return evictions_; }
  std::uint32_t ref_count(BlockId block) const { return meta(block).refs; }
  bool is_cached(BlockId block) const { return meta(block).cached; }

  /// The cached block that continues `parent` with exactly `tokens`; the one published last if there are several.
  std::optional<BlockId> find(const Prefix& parent, Hash128 hash, std::span<const TokenId> tokens) const;
  /// The content up to and including a cached block.
  Prefix prefix_of(BlockId block) const;

  /// Takes the block that was released longest ago; evicts its content. Precondition: num_available() > 0.
  BlockId allocate();
  /// Adds a holder to a cached block.
  void acquire(BlockId block);
  /// Takes one holder from each block of a table, last to first.
  void release(std::span<const BlockId> table);
  /// Makes a full, computed block findable. Precondition: held and not published.
  Prefix publish(BlockId block, const Prefix& parent, Hash128 hash, std::span<const TokenId> tokens);
  /// Forgets all content; false, and nothing changes, while any block is in use.
  bool reset();

  /// Block ids in the order in which they would be taken.
  std::vector<BlockId> free_order() const;
  /// Walks every structure and compares them with each other; empty when they agree, else what does not. O(n).
  std::string audit() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Meta {
    std::uint32_t refs = 0;
    std::uint32_t prev = kNone, next = kNone;                ///< free list; the sentinel stands at index num_blocks
    std::uint32_t bucket_prev = kNone, bucket_next = kNone;  ///< blocks of one bucket, last published first
    bool cached = false;
    bool parent_is_root = false;
    Hash128 hash;
    std::uint64_t identity = 0, parent_identity = 0;
  };

  const Meta& meta(BlockId block) const;
  Meta& meta(BlockId block) { return const_cast<Meta&>(static_cast<const BlockPool*>(this)->meta(block)); }
  std::span<TokenId> tokens_of(std::uint32_t block) {
    return {tokens_.data() + std::size_t{block} * block_size_, block_size_};
  }
  std::span<const TokenId> tokens_of(std::uint32_t block) const {
    return {tokens_.data() + std::size_t{block} * block_size_, block_size_};
  }
  std::uint32_t& bucket(Hash128 hash) { return buckets_[hash.low & (buckets_.size() - 1)]; }
  void link_before(std::uint32_t block, std::uint32_t at);
  void unlink(std::uint32_t block);
  void drop_content(std::uint32_t block);
  std::string audit_free_list() const;
  std::string audit_index() const;

  std::uint32_t num_blocks_, block_size_;
  std::uint32_t available_, cached_idle_ = 0;
  std::uint64_t evictions_ = 0, next_identity_ = 0;
  std::vector<Meta> meta_;              ///< one more than blocks: the free list's sentinel
  std::vector<TokenId> tokens_;         ///< content of cached blocks
  std::vector<std::uint32_t> buckets_;  ///< power of two
};

}  // namespace tokenstone::sched
