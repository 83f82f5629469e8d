// A StepPlan flattened for the forward pass: one entry per token, per attention item, per sampled row.
// Ownership: spans point into the plan. Threads: filled by one thread, then read by all. No failure.
#pragma once

#include <span>
#include <vector>

#include "sched/request.h"

namespace tokenstone::engine {

struct BatchToken {
  TokenId token;
  std::uint32_t position;
  std::uint32_t block;  ///< where its K and V go
  std::uint32_t slot;
};

/// Queries [first, first + count) of the batch, all of one sequence, against one kv head.
struct AttentionItem {
  std::uint32_t first, count;
  std::uint32_t kv_head;
  const std::uint32_t* blocks;
};

struct SampleRow {
  std::uint32_t batch_row;  ///< the sequence's last token
  std::uint32_t plan_row;
};

class StepBatch {
 public:
  void fill(const sched::StepPlan& plan, std::uint32_t block_size, std::uint32_t kv_heads);

  std::vector<BatchToken> tokens;
  std::vector<AttentionItem> items;
  std::vector<SampleRow> samples;
  std::uint32_t max_position = 0;

 private:
  void add_items(const sched::PlanRow& row, std::uint32_t first, std::uint32_t kv_heads);
};

}  // namespace tokenstone::engine
