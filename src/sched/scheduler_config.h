// The engine's scheduling options, orthogonal, and the named presets over them.
//
// Ownership: plain values. Threads: any. Units: tokens and blocks; bytes are the caller's matter.
// Failure: `validate` and `preset` give an Error (usage) that names the option and a working value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "sched/block_hash.h"

namespace tokenstone::sched {

enum class Batching { one, fixed, continuous };  ///< one request; a batch until all end; every step anew
enum class KvLayout { none, contiguous, paged };
enum class Proposer { none, ngram };

struct SchedulerConfig {
  Batching batching = Batching::continuous;
  KvLayout kv_layout = KvLayout::paged;
  Proposer proposer = Proposer::none;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;

  std::uint32_t max_num_seqs = 256;             ///< most sequences that run at once
  std::uint32_t max_num_batched_tokens = 2048;  ///< budget of one step; at least max_num_seqs
  std::uint32_t long_prefill_token_threshold =
      0;  ///< most prompt tokens of one sequence in one step; 0: the budget alone
  std::uint32_t block_size = 16;
  std::uint32_t num_blocks = 0;
  std::uint32_t max_model_len = 0;  ///< prompt and output together
  std::vector<TokenId> eos_token_ids;

  /// Tests put a bad function here to force collisions.
  BlockHashFn block_hash = &hash_block;

  std::uint64_t kv_tokens() const { return std::uint64_t{num_blocks} * block_size; }
};

/// Refuses what is not built and what cannot work.
Status validate(const SchedulerConfig& config);
/// The options of a variant (`--variant NAME`), sizes left as they are by default.
Result<SchedulerConfig> preset(std::string_view name);

}  // namespace tokenstone::sched
