#include "engine/step_batch.h"

#include "base/check.h"

namespace tokenstone::engine {
namespace {

/// Prompt tokens of an attention item: few enough to balance the threads, enough to keep K and V in the near cache.
constexpr std::uint32_t kItemTokens = 16;

static_assert(sizeof(BlockId) == sizeof(std::uint32_t), "block tables are handed to the kernels as numbers");

}  // namespace

void StepBatch::fill(const sched::StepPlan& plan, std::uint32_t block_size, std::uint32_t kv_heads) {
  tokens.clear();
  items.clear();
  samples.clear();
  max_position = 0;
  for (std::uint32_t r = 0; r < plan.rows.size(); ++r) {
    const sched::PlanRow& row = plan.rows[r];
    TS_CHECK(!row.tokens.empty(), "a planned row computes at least one token");
    TS_CHECK(row.blocks.size() * block_size >= row.first_position + row.tokens.size(), "a block table is too short");
    const auto first = static_cast<std::uint32_t>(tokens.size());
    for (std::uint32_t i = 0; i < row.tokens.size(); ++i) {
      const std::uint32_t position = row.first_position + i;
      tokens.push_back({row.tokens[i], position, row.blocks[position / block_size].value, position % block_size});
    }
    max_position = std::max(max_position, tokens.back().position);
    add_items(row, first, kv_heads);
    if (row.samples) samples.push_back({static_cast<std::uint32_t>(tokens.size() - 1), r});
  }
}

void StepBatch::add_items(const sched::PlanRow& row, std::uint32_t first, std::uint32_t kv_heads) {
  const auto* blocks = reinterpret_cast<const std::uint32_t*>(row.blocks.data());
  const auto count = static_cast<std::uint32_t>(row.tokens.size());
  for (std::uint32_t head = 0; head < kv_heads; ++head)
    for (std::uint32_t i = 0; i < count; i += kItemTokens)
      items.push_back({first + i, std::min(kItemTokens, count - i), head, blocks});
}

}  // namespace tokenstone::engine
