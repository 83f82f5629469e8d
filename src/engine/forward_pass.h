// The forward pass of one step over a ragged batch, and the choice of the next tokens.
//
// Per layer: norm -> qkv -> (rotate, store K and V of the whole batch) | barrier | attention -> o -> norm -> gate+up
// with SiLU
// -> down. K and V of all tokens are stored before any attention reads, so sequences of one step may share blocks. The
// residual stream is float; the head is computed for the rows that sample only. A row's result does not depend on what
// else is in the batch, on the number of threads, or on the block size. Ownership: borrows weights, kernels and pool;
// owns the KV memory and scratch, which grows and is kept. Threads: one caller. Failure: none.
#pragma once

#include <atomic>
#include <vector>

#include "base/loop.h"
#include "engine/kv_cache.h"
#include "engine/rope_table.h"
#include "engine/step_batch.h"
#include "engine/weights.h"
#include "kernels/sampler.h"
#include "kernels/thread_pool.h"

namespace tokenstone::engine {

/// Whatever the element type.
class ForwardPass {
 public:
  virtual ~ForwardPass() = default;
  /// Fills tokens, forward_ns and sampling_ns (zero without a clock).
  virtual void run(const sched::StepPlan& plan, const Clock* clock, sched::StepResult& result) = 0;
  /// Logits of the i-th row that sampled in the last step; [vocab]. For tests and analysis.
  virtual std::span<const float> logits(std::size_t sampled_row) const = 0;
};

struct ForwardOptions {
  std::uint32_t num_blocks = 0, block_size = 16;
  const kernels::Kernels* kernels = nullptr;  ///< null: the default table
};

template <class T>
class TypedForwardPass final : public ForwardPass {
 public:
  TypedForwardPass(const ModelShape& shape, Weights<T> weights, kernels::ThreadPool& pool,
                   const ForwardOptions& options);
  void run(const sched::StepPlan& plan, const Clock* clock, sched::StepResult& result) override;
  std::span<const float> logits(std::size_t sampled_row) const override;

 private:
  using Worker = kernels::ThreadPool::Worker;
  /// Memory that only grows.
  template <class E>
  struct Scratch {
    kernels::HugeBuffer memory;
    E* reserve(std::size_t elements);
  };

  void reserve_scratch();
  void compute(Worker& worker);
  void embed(Worker& worker);
  void layer(Worker& worker, std::size_t index);
  const T* normalise(Worker& worker, const std::vector<float>& weight);
  void multiply(Worker& worker, const kernels::PackedMatrix<T>& matrix, kernels::GemmCall<T> call) const;
  void rotate_and_store(Worker& worker, kernels::KvView<T> kv);
  void attend(std::size_t layer_index, kernels::KvView<T> kv);
  void attend_item(const AttentionItem& item, kernels::KvView<T> kv);
  void compute_logits(Worker& worker);
  void sample(Worker& worker, const sched::StepPlan& plan, sched::StepResult& result);
  void forbid_end(const sched::SamplingParams& sampling, float* logits) const;

  // Fixed after construction.
  const ModelShape shape_;
  const Weights<T> weights_;
  kernels::ThreadPool& pool_;
  const kernels::Kernels& kernels_;
  const std::uint32_t block_size_;
  const std::size_t hidden_stride_, qkv_stride_, ffn_stride_, vocab_stride_, heads_width_;
  // Written by the caller between steps.
  KvCache<T> cache_;
  RopeTable rope_;
  StepBatch batch_;
  Scratch<float> x_memory_, qkv_memory_, logits_memory_;
  Scratch<T> norm_memory_, query_memory_, attended_memory_, act_memory_;
  float *x_ = nullptr, *qkv_ = nullptr, *logits_ = nullptr;
  T *norm_ = nullptr, *query_ = nullptr, *attended_ = nullptr, *act_ = nullptr;
  std::vector<kernels::Sampler> samplers_;  ///< one per worker
  // Shared within a step.
  std::vector<std::atomic<std::uint32_t>> next_item_;  ///< per layer
  std::atomic<std::uint32_t> next_sample_{0};
};

}  // namespace tokenstone::engine
