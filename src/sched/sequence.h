// One sequence inside the scheduler: its tokens, its block table, how far it is. Private to the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/block_pool.h"
#include "sched/request.h"

namespace tokenstone::sched {

struct Sequence {
  SeqId id;
  SamplingParams sampling;
  std::uint64_t cache_salt = 0;
  TimeNs arrival = 0, first_scheduled = kUnknownTime;

  std::vector<TokenId> tokens;  ///< prompt, then output
  std::uint32_t num_prompt = 0;
  std::uint32_t computed = 0;       ///< tokens whose K and V are in the blocks
  std::uint32_t scheduled = 0;      ///< tokens of the step that is planned
  std::uint32_t prefill_start = 0;  ///< where computing began after the last admission
  std::vector<BlockId> blocks;
  std::vector<Hash128> hashes;  ///< of full blocks; kept across preemption
  std::uint32_t published = 0;  ///< leading blocks that are in the prefix index
  Prefix published_prefix;      ///< the content of those

  bool is_running = false;
  bool dropped = false;  ///< ended while its step was under way
  std::uint32_t cached_tokens = 0, chunks = 0, preemptions = 0;
  Sequence* before = nullptr;  ///< neighbours in the waiting queue
  Sequence* after = nullptr;

  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t num_output() const { return num_tokens() - num_prompt; }
  std::uint32_t remaining() const { return num_tokens() - computed; }
  bool was_admitted() const { return first_scheduled != kUnknownTime; }
  /// One token to compute, and it is one that was sampled.
  bool decodes() const { return remaining() == 1 && computed >= num_prompt; }
};

/// First come, first served; a preempted sequence goes back to the front; leaving from the middle is O(1).
class WaitingQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  std::uint32_t size() const { return size_; }
  Sequence* front() const { return head_; }
  void push_back(Sequence* s) { insert(s, tail_, nullptr); }
  void push_front(Sequence* s) { insert(s, nullptr, head_); }
  void remove(Sequence* s) {
    (s->before ? s->before->after : head_) = s->after;
    (s->after ? s->after->before : tail_) = s->before;
    s->before = s->after = nullptr;
    --size_;
  }

 private:
  void insert(Sequence* s, Sequence* before, Sequence* after) {
    s->before = before;
    s->after = after;
    (before ? before->after : head_) = s;
    (after ? after->before : tail_) = s;
    ++size_;
  }
  Sequence* head_ = nullptr;
  Sequence* tail_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace tokenstone::sched
