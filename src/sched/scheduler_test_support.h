// What the scheduler's tests share: short ways to make requests and to run steps with tokens of their choice.
#pragma once

#include <functional>
#include <vector>

#include "sched/scheduler.h"

namespace tokenstone::sched {

inline SchedulerConfig small_config(std::uint32_t num_blocks, std::uint32_t block_size = 4) {
  SchedulerConfig config;
  config.num_blocks = num_blocks;
  config.block_size = block_size;
  config.max_model_len = num_blocks * block_size;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 256;
  config.eos_token_ids = {0};
  return config;
}

/// Tokens first, first + 1, ...; different `first`s a thousand apart share nothing.
inline std::vector<TokenId> run_of(TokenId first, std::uint32_t count) {
  std::vector<TokenId> tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

inline NewRequest request(std::uint64_t id, std::vector<TokenId> prompt, std::int32_t max_tokens = 100) {
  NewRequest r{.seq = SeqId{id}, .prompt = std::move(prompt)};
  r.sampling.max_tokens = max_tokens;
  return r;
}

/// A scheduler and the loop around it; by default each sampled token is 900 + its sequence's output count.
struct Engine {
  explicit Engine(SchedulerConfig config) : scheduler(std::move(config)) {}

  void add(NewRequest r) {
    const Status added = scheduler.add(std::move(r));
    if (!added) throw std::runtime_error(added.error().message);
  }
  const StepPlan& plan() { return scheduler.schedule(now++); }
  std::vector<SeqOutput> apply(const StepPlan& plan) {
    StepResult result;
    for (const PlanRow& row : plan.rows) result.tokens.push_back(row.samples ? choose(row) : kNoToken);
    const auto outputs = scheduler.apply(result);
    return {outputs.begin(), outputs.end()};
  }
  std::vector<SeqOutput> step() {
    const StepPlan& planned = plan();
    if (planned.empty()) return {};
    return apply(planned);
  }
  /// Runs until nothing is left; all finishing outputs.
  std::vector<SeqOutput> drain() {
    std::vector<SeqOutput> ended;
    while (!scheduler.idle())
      for (const SeqOutput& output : step())
        if (output.finished()) ended.push_back(output);
    return ended;
  }

  Scheduler scheduler;
  TimeNs now = 0;
  std::function<TokenId(const PlanRow&)> choose = [](const PlanRow& row) {
    return static_cast<TokenId>(900 + row.num_output_tokens);
  };
};

inline std::vector<std::uint32_t> values(std::span<const BlockId> blocks) {
  std::vector<std::uint32_t> ids;
  for (const BlockId block : blocks) ids.push_back(block.value);
  return ids;
}

}  // namespace tokenstone::sched
