// What the scheduler and the executors know of a request, and the plan of one step. Plain data; no clock, thread or
// tensor.
//
// Ownership: the Scheduler owns each `Sequence`'s tokens and block table; a StepPlan's spans point into them and stay
// valid until the Scheduler is next changed (the matching `apply`).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace tokenstone::sched {

/// How the next token is chosen. Sampling is a function of (seed, position) alone.
struct SamplingParams {
  double temperature = 1.0;  ///< 0: greedy
  double top_p = 1.0;        ///< (0, 1]
  std::int32_t top_k = 0;    ///< 0 or negative: all
  double min_p = 0.0;        ///< [0, 1]
  std::uint64_t seed = 0;
  std::int32_t max_tokens = 16;  ///< at least 0
  std::int32_t min_tokens = 0;   ///< end-of-text is not chosen before this many output tokens
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids;
  std::vector<std::string> stop;  ///< stop strings; found by the output processor, not by the scheduler
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
};

enum class FinishReason { none, stop, length, abort, error };

/// One request as it enters the scheduler.
struct NewRequest {
  SeqId seq;
  std::vector<TokenId> prompt;  ///< at least one token
  SamplingParams sampling;
  TimeNs arrival = 0;
  std::uint64_t cache_salt = 0;  ///< prompts with different salts share no blocks
};

/// One sequence's share of a step: `tokens[0]` stands at position `first_position` of the sequence.
struct PlanRow {
  SeqId seq;
  std::uint32_t first_position = 0;  ///< tokens computed (or found in the cache) before this step
  std::span<const TokenId> tokens;   ///< the tokens to compute; [1 .. budget]
  std::span<const BlockId> blocks;   ///< block table, long enough for first_position + tokens.size()
  const SamplingParams* sampling = nullptr;
  std::uint32_t num_output_tokens = 0;  ///< output tokens the sequence has already
  bool samples = false;                 ///< the last token's logits give the next token
  bool prefill = false;                 ///< computes prompt (or recomputed) tokens beyond a single decode token
};

/// What one step computes, and the scheduler's state as the step record wants it.
struct StepPlan {
  std::uint64_t step_id = 0;
  std::vector<PlanRow> rows;     ///< decodes first, then prefills, each in order of admission
  std::vector<SeqId> preempted;  ///< lost their blocks in this step
  std::uint32_t num_prefill_tokens = 0;
  std::uint32_t num_decode_sequences = 0;
  std::uint32_t num_batched_tokens = 0;  ///< prefill tokens + decode sequences
  std::uint32_t chunked = 0;             ///< prompts of which this step computes a part only
  std::uint32_t waiting_queue_len = 0;   ///< after planning
  std::uint32_t running_queue_len = 0;
  std::uint32_t prefilling_queue_len = 0;                                    ///< running, prompt not whole yet
  std::uint32_t blocks_active = 0, blocks_cached_idle = 0, blocks_free = 0;  ///< add up to the pool
  std::uint64_t hit_tokens = 0, query_tokens = 0;  ///< of prompts looked up for the first time in this step
  std::uint32_t evictions = 0, preemptions = 0, kv_blocked_requests = 0;
  std::uint64_t wasted_slots = 0, allocated_slots = 0;  ///< token slots of blocks in use: unused ones, all
  bool empty() const { return rows.empty(); }
};

/// The executor's answer to a plan.
struct StepResult {
  TimeNs duration_ns = 0;
  TimeNs forward_ns = 0, sampling_ns = 0;
  std::vector<TokenId> tokens;  ///< one per row; kNoToken where the row does not sample
};

}  // namespace tokenstone::sched
