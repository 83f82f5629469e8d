// The hash chain of the prefix index: hash(block i) = H(hash(block i-1), tokens of block i), rooted in the cache salt.
//
// What: 128-bit XXH3 (xxHash 0.8, BSD-2). The hash only finds the bucket; BlockPool compares tokens and parent, so that
// a collision is a miss and never another prompt's data. Threads: any (pure functions). Failure: none.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace tokenstone::sched {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const Hash128&) const = default;
};

/// Chains over the parent, so that equal tokens after different histories hash differently.
using BlockHashFn = Hash128 (*)(Hash128 parent, std::span<const TokenId> tokens);

Hash128 hash_root(std::uint64_t cache_salt);
Hash128 hash_block(Hash128 parent, std::span<const TokenId> tokens);

}  // namespace tokenstone::sched
