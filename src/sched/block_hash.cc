#include "sched/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tokenstone::sched {
namespace {

// A random-looking constant that keeps roots apart from the hash of an ordinary block.
constexpr std::uint64_t kRootSeed = 0x746f6b656e73746fULL;

Hash128 from_xxh(XXH128_hash_t hash) { return {hash.low64, hash.high64}; }

}  // namespace

Hash128 hash_root(std::uint64_t cache_salt) {
  return from_xxh(XXH3_128bits_withSeed(&cache_salt, sizeof cache_salt, kRootSeed));
}

// XXH3's seed has 64 bits: the parent's low half is the seed, and its high half is mixed into the result by hashing the
// pair once more, so that all 128 bits of the parent count.
Hash128 hash_block(Hash128 parent, std::span<const TokenId> tokens) {
  const XXH128_hash_t own = XXH3_128bits_withSeed(tokens.data(), tokens.size_bytes(), parent.low);
  const std::uint64_t pair[3] = {own.low64, own.high64, parent.high};
  return from_xxh(XXH3_128bits(pair, sizeof pair));
}

}  // namespace tokenstone::sched
