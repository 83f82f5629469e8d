// Continuous batching as a pure state machine: requests in, a plan per step out, results in, outputs out.
//
// One idea carries it (vLLM V1): a sequence has tokens, and some of them are computed; a step lets `computed` catch up.
// Chunked prefill, prefix hits and resuming after preemption are that one statement. A step has one token budget:
//   1. running sequences that decode, in order of admission, one token each;
//   2. running prompts that are not whole yet, in order, a chunk each;
//   3. if nobody was preempted: waiting requests, first come first served, while budget, slots and blocks last.
//
// A running sequence that finds no block preempts the last admitted one (perhaps itself): its blocks are freed, it goes
// to the front of the queue and later recomputes its tokens, output included. A prompt is admitted when all its blocks
// are available beyond those promised to prompts that are under way, so that prompts do not push each other out.
//
// Differences from vLLM V1: decodes come before running prompts; blocks are published after the step that computed them
// (two equal prompts in one step share nothing); a sequence whose tokens outgrow the whole pool ends with `length`.
//
// Stops: an end-of-text token (unless ignore_eos) or a stop token id, once min_tokens are there, ends with `stop`; such
// a token counts as output token and is not among the tokens handed out. max_tokens, max_model_len and the pool's size
// end with `length`. Stop strings are found outside, which then calls `finish`.
//
// Ownership: owns sequences and blocks; a plan's spans are valid until the matching `apply`, outputs until the next
// call of schedule or apply. Threads: one. Times: stored, never compared. Cost: a step is O(running + admitted), no
// allocation once its buffers have grown. Failure: `add` refuses with an Error; broken state and livelock are
// programmer errors and stop.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sched/block_pool.h"
#include "sched/progress_watch.h"
#include "sched/request.h"
#include "sched/scheduler_config.h"

namespace tokenstone::sched {

struct Sequence;
class WaitingQueue;

/// A sequence's counters so far.
struct SeqCounters {
  TimeNs arrival = 0;
  TimeNs first_scheduled = kUnknownTime;  ///< the step that first computed some of its prompt
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  ///< found in the prefix index at first admission
  std::uint32_t output_tokens = 0;  ///< an ending stop token included
  std::uint32_t chunks = 0;         ///< steps that computed prompt tokens before the first output token
  std::uint32_t preemptions = 0;
};

/// What one step gave one sequence.
struct SeqOutput {
  SeqId seq;
  std::span<const TokenId> tokens;  ///< new tokens; without the token that stopped it
  FinishReason reason = FinishReason::none;
  SeqCounters counters;
  bool finished() const { return reason != FinishReason::none; }
};

/// Gauges and running totals.
struct SchedulerCounts {
  std::uint32_t running = 0, waiting = 0;
  std::uint32_t blocks_active = 0, blocks_cached_idle = 0, blocks_free = 0;  ///< add up to the pool
  std::uint64_t steps = 0, preemptions = 0, evictions = 0;
  std::uint64_t query_tokens = 0, hit_tokens = 0;  ///< first-time look-ups only
};

class Scheduler {
 public:
  /// Precondition: validate(config).
  explicit Scheduler(SchedulerConfig config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const SchedulerConfig& config() const { return config_; }
  /// Whether a prompt of this length can ever run: too_large with both numbers if not.
  Status check_fits(std::size_t prompt_tokens) const;
  /// Queues a request. Errors: usage for an empty prompt or a known id, too_large as above.
  Status add(NewRequest request);
  /// Frees a sequence at once, or, if its step is under way, when that is applied. Unknown ids are ignored (false).
  bool abort(SeqId seq);
  /// The same for a sequence that ended for a reason found outside (a stop string).
  bool finish(SeqId seq) { return abort(seq); }

  /// Plans a step; empty when there is nothing to do. A plan that is not empty must be applied before the next one.
  const StepPlan& schedule(TimeNs now);
  /// The same plan again; after `apply` its counts are still there, its spans are not.
  const StepPlan& last_plan() const { return plan_; }
  /// Takes the results of the last plan. Sequences that end here are freed already when it returns.
  std::span<const SeqOutput> apply(const StepResult& result);

  /// Empties the prefix index; false while any block is in use.
  bool reset_prefix_cache() { return pool_.reset(); }
  bool idle() const;
  bool contains(SeqId seq) const { return sequences_.contains(seq); }
  SchedulerCounts counts() const;
  /// For tests and dumps.
  const BlockPool& pool() const { return pool_; }
  std::span<const BlockId> blocks_of(SeqId seq) const;

 private:
  void schedule_running(bool decodes, std::uint32_t& budget);
  void schedule_waiting(TimeNs now, std::uint32_t& budget);
  std::uint32_t clip(std::uint32_t tokens, std::uint32_t budget) const;
  bool grow(Sequence& seq, std::uint32_t tokens, std::uint32_t& budget);
  void preempt(Sequence& seq, std::uint32_t& budget);
  void find_prefix(Sequence& seq);
  bool fits(const Sequence& seq, std::uint64_t promised) const;
  void admit(Sequence& seq, std::uint32_t tokens, TimeNs now);
  void allocate_for(Sequence& seq, std::uint32_t tokens);
  std::uint64_t promised_blocks() const;
  void hash_to(Sequence& seq, std::uint32_t full_blocks);
  void publish_full_blocks(Sequence& seq);
  void fill_plan();
  void add_row(Sequence& seq);
  FinishReason accept(Sequence& seq, TokenId token);
  void let_go(Sequence& seq);
  void remove_finished();
  std::uint32_t blocks_for(std::uint64_t tokens) const;
  std::string describe() const;

  SchedulerConfig config_;
  BlockPool pool_;
  ProgressWatch watch_;
  std::uint64_t longest_sequence_;  ///< tokens at which a sequence ends with `length`
  std::unordered_map<SeqId, std::unique_ptr<Sequence>> sequences_;
  std::unique_ptr<WaitingQueue> waiting_;
  std::vector<Sequence*> running_;                  ///< in order of admission
  std::vector<Sequence*> plan_sequences_;           ///< beside the plan's rows
  std::vector<std::unique_ptr<Sequence>> dropped_;  ///< ended while their step was under way
  std::vector<SeqId> finished_;
  std::vector<BlockId> hits_;  ///< of the request at the head of the queue
  StepPlan plan_;
  std::vector<SeqOutput> outputs_;
  std::vector<TokenId> output_tokens_;
  bool in_flight_ = false;
  SchedulerCounts totals_;
};

}  // namespace tokenstone::sched
