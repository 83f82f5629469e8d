// Byte-pair merging: of all neighbouring pairs that may be merged, the one with the lowest rank is, leftmost first,
// until none is left. Example with ranks "l o" 0, "lo w" 1: l o w -> lo w -> low.
//
// Threads: immutable after construction. Nothing can fail. Source: Sennrich et al. 2016; ranks may tie (SentencePiece's
// scores).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace tokenstone::token {

/// A token, or from the vocabulary's size up a character that is no token but a part of tokens.
using Symbol = std::int32_t;

struct Merge {
  Symbol left, right, result;
  std::uint32_t rank;
};

class Merger {
 public:
  Merger() : Merger(std::span<const Merge>()) {}
  /// Of two merges of the same pair the lower rank counts. Symbols are not negative.
  explicit Merger(std::span<const Merge> merges);

  /// Merges in place.
  void merge(std::vector<Symbol>& symbols) const;
  /// The two ways to do it, which give the same result: for few symbols (quadratic, no allocation) and for many (a
  /// heap).
  void merge_by_scan(std::vector<Symbol>& symbols) const;
  void merge_by_heap(std::vector<Symbol>& symbols) const;

 private:
  static constexpr std::uint32_t kNoRank = UINT32_MAX;
  struct Slot {
    Symbol left = -1, right = -1, result = -1;
    std::uint32_t rank = kNoRank;
  };
  static std::uint64_t hash(Symbol left, Symbol right);
  const Slot& find(Symbol left, Symbol right) const;

  std::vector<Slot> slots_;  ///< open addressing, a power of two, at most half full
  std::uint64_t mask_ = 0;
};

}  // namespace tokenstone::token
