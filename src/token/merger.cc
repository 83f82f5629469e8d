#include "token/merger.h"

#include <bit>
#include <queue>

namespace tokenstone::token {
namespace {

/// Below this many symbols scanning for the minimum beats a heap.
constexpr std::size_t kFewSymbols = 40;

}  // namespace

Merger::Merger(std::span<const Merge> merges) {
  slots_.resize(std::bit_ceil(merges.size() * 2 + 2));
  mask_ = slots_.size() - 1;
  for (const Merge& merge : merges) {
    std::uint64_t at = hash(merge.left, merge.right) & mask_;
    while (slots_[at].left >= 0 && !(slots_[at].left == merge.left && slots_[at].right == merge.right))
      at = (at + 1) & mask_;
    if (merge.rank < slots_[at].rank) slots_[at] = {merge.left, merge.right, merge.result, merge.rank};
  }
}

std::uint64_t Merger::hash(Symbol left, Symbol right) {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;  // Fibonacci hashing: the high bits are the good ones
  return mixed >> 29;
}

const Merger::Slot& Merger::find(Symbol left, Symbol right) const {
  std::uint64_t at = hash(left, right) & mask_;
  // An empty slot has rank kNoRank, which is what "no merge" means to the callers.
  while (slots_[at].left >= 0 && !(slots_[at].left == left && slots_[at].right == right)) at = (at + 1) & mask_;
  return slots_[at];
}

void Merger::merge(std::vector<Symbol>& symbols) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kFewSymbols)
    merge_by_scan(symbols);
  else
    merge_by_heap(symbols);
}

void Merger::merge_by_scan(std::vector<Symbol>& symbols) const {
  struct Pair {
    std::uint32_t rank;
    Symbol result;
  };
  thread_local std::vector<Pair> pairs;
  const auto look_up = [&](std::size_t i) {
    const Slot& slot = find(symbols[i], symbols[i + 1]);
    return Pair{slot.rank, slot.result};
  };
  pairs.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(look_up(i));
  while (!pairs.empty()) {
    const auto best = std::ranges::min_element(pairs, {}, &Pair::rank);
    if (best->rank == kNoRank) return;
    const auto i = static_cast<std::size_t>(best - pairs.begin());
    symbols[i] = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    pairs.erase(best);
    if (i > 0) pairs[i - 1] = look_up(i - 1);
    if (i < pairs.size()) pairs[i] = look_up(i);
  }
}

void Merger::merge_by_heap(std::vector<Symbol>& symbols) const {
  struct Candidate {
    std::uint32_t rank, position;
    Symbol left, right, result;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  constexpr std::uint32_t kEnd = UINT32_MAX;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> before(count), after(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto offer = [&](std::uint32_t i) {
    const Slot& slot = find(symbols[i], symbols[after[i]]);
    if (slot.rank != kNoRank) heap.push({slot.rank, i, slot.left, slot.right, slot.result});
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kEnd : i - 1;
    after[i] = i + 1 == count ? kEnd : i + 1;
  }
  for (std::uint32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    const std::uint32_t i = best.position;
    // A candidate is out of date when one of its two symbols has been merged since (merged ones are -1).
    if (symbols[i] != best.left || after[i] == kEnd || symbols[after[i]] != best.right) continue;
    const std::uint32_t gone = after[i];
    symbols[i] = best.result;
    symbols[gone] = -1;
    after[i] = after[gone];
    if (after[i] != kEnd) {
      before[after[i]] = i;
      offer(i);
    }
    if (before[i] != kEnd) offer(before[i]);
  }
  std::erase(symbols, -1);
}

}  // namespace tokenstone::token
