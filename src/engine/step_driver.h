// For tests: drives an executor step by step without a scheduler, with block tables of its own.
#pragma once

#include <deque>

#include "engine/cpu_executor.h"

namespace tokenstone::engine {

struct DrivenSequence {
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  std::uint32_t computed = 0;
  sched::SamplingParams sampling;
};

class StepDriver {
 public:
  StepDriver(CpuExecutor& executor, std::uint32_t block_size) : executor_(executor), block_size_(block_size) {
    plan_.step_id = 0;
  }

  /// A sequence that goes on from `shared` leading blocks of another one.
  DrivenSequence& add(std::vector<TokenId> tokens, const DrivenSequence* from = nullptr, std::uint32_t shared = 0) {
    DrivenSequence& seq = sequences_.emplace_back();
    seq.tokens = std::move(tokens);
    seq.sampling.temperature = 0;
    if (from != nullptr) seq.blocks.assign(from->blocks.begin(), from->blocks.begin() + shared);
    seq.computed = shared * block_size_;
    return seq;
  }

  /// Puts the next `count` tokens of a sequence into the step.
  void plan(DrivenSequence& seq, std::uint32_t count) {
    while (seq.blocks.size() * block_size_ < seq.computed + count) seq.blocks.push_back(BlockId{next_block_++});
    sched::PlanRow row;
    row.first_position = seq.computed;
    row.tokens = std::span<const TokenId>(seq.tokens).subspan(seq.computed, count);
    row.blocks = seq.blocks;
    row.sampling = &seq.sampling;
    row.samples = seq.computed + count == seq.tokens.size();
    plan_.rows.push_back(row);
    planned_.push_back(&seq);
  }

  /// Executes and appends the sampled tokens. Logits of the rows that sampled, in the order of planning.
  std::vector<std::vector<float>> step() {
    const sched::StepResult& result = executor_.execute(plan_, 0);
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
      planned_[i]->computed += static_cast<std::uint32_t>(plan_.rows[i].tokens.size());
      if (!plan_.rows[i].samples) continue;
      const auto row = executor_.logits(logits.size());
      logits.emplace_back(row.begin(), row.end());
      planned_[i]->tokens.push_back(result.tokens[i]);
    }
    plan_.rows.clear();
    planned_.clear();
    return logits;
  }

 private:
  CpuExecutor& executor_;
  std::uint32_t block_size_;
  std::uint32_t next_block_ = 0;
  std::deque<DrivenSequence> sequences_;
  sched::StepPlan plan_;
  std::vector<DrivenSequence*> planned_;
};

}  // namespace tokenstone::engine
