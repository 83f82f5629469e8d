#include "engine/forward_pass.h"

#include <cmath>

#include "base/check.h"

namespace tokenstone::engine {
namespace {

using kernels::Epilogue;
using kernels::kPanel;
using kernels::round_up;

/// Up to so many rows every worker normalises all of them for itself: cheaper than a barrier.
constexpr std::size_t kPrivateNormRows = 8;

}  // namespace

template <class T>
template <class E>
E* TypedForwardPass<T>::Scratch<E>::reserve(std::size_t elements) {
  if (elements * sizeof(E) > memory.bytes()) memory = kernels::HugeBuffer(elements * sizeof(E));
  return memory.template as<E>();
}

template <class T>
TypedForwardPass<T>::TypedForwardPass(const ModelShape& shape, Weights<T> weights, kernels::ThreadPool& pool,
                                      const ForwardOptions& options)
    : shape_(shape),
      weights_(std::move(weights)),
      pool_(pool),
      kernels_(options.kernels != nullptr ? *options.kernels : kernels::default_kernels()),
      block_size_(options.block_size),
      hidden_stride_(round_up(shape.hidden, kPanel)),
      qkv_stride_(round_up(std::size_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim, kPanel)),
      ffn_stride_(round_up(shape.ffn, kPanel)),
      vocab_stride_(round_up(shape.vocab, kPanel)),
      heads_width_(std::size_t{shape.heads} * shape.head_dim),
      cache_(shape, options.num_blocks, options.block_size),
      rope_(shape.head_dim, shape.rope_theta),
      samplers_(pool.size(), kernels::Sampler(kernels_)),
      next_item_(shape.layers) {
  TS_CHECK(options.block_size % kernels::kTokenGroup == 0, "a block is a whole number of groups of 16 tokens");
}

template <class T>
void TypedForwardPass<T>::run(const sched::StepPlan& plan, const Clock* clock, sched::StepResult& result) {
  const auto now = [&] { return clock != nullptr ? clock->now() : TimeNs{0}; };
  const TimeNs start = now();
  TimeNs forward_end = start;
  batch_.fill(plan, block_size_, shape_.kv_heads);
  for (const BatchToken& t : batch_.tokens)
    TS_CHECK(t.token >= 0 && static_cast<std::uint32_t>(t.token) < shape_.vocab, "a token outside the vocabulary");
  rope_.reserve(batch_.max_position);
  reserve_scratch();
  for (auto& next : next_item_) next.store(0, std::memory_order_relaxed);
  next_sample_.store(0, std::memory_order_relaxed);
  result.tokens.assign(plan.rows.size(), kNoToken);
  pool_.run([&](Worker& worker) {
    compute(worker);
    if (worker.index() == 0) forward_end = now();
    sample(worker, plan, result);
  });
  result.forward_ns = forward_end - start;
  result.sampling_ns = now() - forward_end;
}

template <class T>
std::span<const float> TypedForwardPass<T>::logits(std::size_t sampled_row) const {
  TS_CHECK(sampled_row < batch_.samples.size(), "the last step sampled fewer rows");
  return {logits_ + sampled_row * vocab_stride_, shape_.vocab};
}

template <class T>
void TypedForwardPass<T>::reserve_scratch() {
  const std::size_t rows = batch_.tokens.size(), samples = batch_.samples.size();
  x_ = x_memory_.reserve(rows * hidden_stride_);
  qkv_ = qkv_memory_.reserve(rows * qkv_stride_);
  const std::size_t norm_rows = std::max({rows, samples, kPrivateNormRows * pool_.size()});
  norm_ = norm_memory_.reserve(norm_rows * hidden_stride_);
  query_ = query_memory_.reserve(rows * heads_width_);
  attended_ = attended_memory_.reserve(rows * heads_width_);
  act_ = act_memory_.reserve(rows * ffn_stride_);
  logits_ = logits_memory_.reserve(samples * vocab_stride_);
}

template <class T>
void TypedForwardPass<T>::compute(Worker& worker) {
  embed(worker);
  worker.barrier();
  for (std::size_t i = 0; i < shape_.layers; ++i) layer(worker, i);
  compute_logits(worker);
}

template <class T>
void TypedForwardPass<T>::embed(Worker& worker) {
  const auto range = worker.range(batch_.tokens.size());
  for (std::size_t r = range.begin; r < range.end; ++r)
    weights_.embedding.unpack_row(static_cast<std::size_t>(batch_.tokens[r].token), x_ + r * hidden_stride_);
}

/// Every phase but the attention cuts its output columns statically between the workers.
template <class T>
void TypedForwardPass<T>::layer(Worker& worker, std::size_t index) {
  const LayerWeights<T>& w = weights_.layers[index];
  const kernels::KvView<T> kv = cache_.layer(index);
  const T* normed = normalise(worker, w.attn_norm);
  multiply(worker, w.qkv, {.a = normed, .lda = hidden_stride_, .out = qkv_, .ldo = qkv_stride_});
  worker.barrier();
  rotate_and_store(worker, kv);
  worker.barrier();
  attend(index, kv);
  worker.barrier();
  multiply(worker, w.o,
           {.a = attended_, .lda = heads_width_, .epilogue = Epilogue::add, .out = x_, .ldo = hidden_stride_});
  worker.barrier();
  normed = normalise(worker, w.ffn_norm);
  multiply(worker, w.gate_up,
           {.a = normed, .lda = hidden_stride_, .epilogue = Epilogue::silu_mul, .act = act_, .ldo = ffn_stride_});
  worker.barrier();
  multiply(worker, w.down,
           {.a = act_, .lda = ffn_stride_, .epilogue = Epilogue::add, .out = x_, .ldo = hidden_stride_});
  worker.barrier();
}

/// Precondition: a barrier since x was written. The result may be read at once.
template <class T>
const T* TypedForwardPass<T>::normalise(Worker& worker, const std::vector<float>& weight) {
  const std::size_t rows = batch_.tokens.size();
  const auto norm_rows = [&](std::size_t begin, std::size_t end, T* out) {
    for (std::size_t r = begin; r < end; ++r)
      kernels_.typed<T>().rms_norm(x_ + r * hidden_stride_, weight.data(), shape_.rms_eps, shape_.hidden,
                                   out + r * hidden_stride_);
  };
  if (rows <= kPrivateNormRows) {
    T* mine = norm_ + worker.index() * kPrivateNormRows * hidden_stride_;
    norm_rows(0, rows, mine);
    return mine;
  }
  const auto range = worker.range(rows);
  norm_rows(range.begin, range.end, norm_);
  worker.barrier();
  return norm_;
}

template <class T>
void TypedForwardPass<T>::multiply(Worker& worker, const kernels::PackedMatrix<T>& matrix,
                                   kernels::GemmCall<T> call) const {
  call.w = matrix.data();
  call.k = matrix.inputs();
  if (call.rows == 0) call.rows = batch_.tokens.size();
  const auto range = worker.range(matrix.panels(), 2);
  call.panel_begin = range.begin;
  call.panel_end = range.end;
  kernels_.typed<T>().gemm(call);
}

template <class T>
void TypedForwardPass<T>::rotate_and_store(Worker& worker, kernels::KvView<T> kv) {
  const std::size_t dim = shape_.head_dim;
  const auto range = worker.range(batch_.tokens.size());
  for (std::size_t r = range.begin; r < range.end; ++r) {
    const BatchToken& token = batch_.tokens[r];
    const float *cos = rope_.cos(token.position), *sin = rope_.sin(token.position);
    const float* row = qkv_ + r * qkv_stride_;
    for (std::size_t h = 0; h < shape_.heads; ++h)
      kernels_.typed<T>().rope_query(row + h * dim, cos, sin, dim, query_ + r * heads_width_ + h * dim);
    const float *key = row + heads_width_, *value = key + shape_.kv_heads * dim;
    for (std::size_t h = 0; h < shape_.kv_heads; ++h)
      kernels_.typed<T>().store_kv({kv, token.block, token.slot, h, key + h * dim, value + h * dim, cos, sin});
  }
}

/// Items differ in cost by their context, so workers fetch them one by one; the result does not depend on who did what.
template <class T>
void TypedForwardPass<T>::attend(std::size_t layer_index, kernels::KvView<T> kv) {
  std::atomic<std::uint32_t>& next = next_item_[layer_index];
  for (std::uint32_t i = next.fetch_add(1, std::memory_order_relaxed); i < batch_.items.size();
       i = next.fetch_add(1, std::memory_order_relaxed))
    attend_item(batch_.items[i], kv);
}

/// All query heads of the kv head's group, of all tokens of the item, as many at a time as share one pass over K and V.
template <class T>
void TypedForwardPass<T>::attend_item(const AttentionItem& item, kernels::KvView<T> kv) {
  const std::size_t group = shape_.group(), vectors = item.count * group, dim = shape_.head_dim;
  kernels::AttentionCall<T> call;
  call.kv = kv;
  call.blocks = item.blocks;
  call.kv_head = item.kv_head;
  call.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  for (std::size_t v = 0; v < vectors; v += kernels::kMaxQueries) {
    call.num_queries = std::min(kernels::kMaxQueries, vectors - v);
    for (std::size_t q = 0; q < call.num_queries; ++q) {
      const std::size_t row = item.first + (v + q) / group, head = item.kv_head * group + (v + q) % group;
      call.query[q] = query_ + row * heads_width_ + head * dim;
      call.out[q] = attended_ + row * heads_width_ + head * dim;
      call.context[q] = batch_.tokens[row].position + 1;
    }
    kernels_.typed<T>().attention(call);
  }
}

template <class T>
void TypedForwardPass<T>::compute_logits(Worker& worker) {
  const std::size_t samples = batch_.samples.size();
  if (samples == 0) return;
  const auto range = worker.range(samples);
  for (std::size_t i = range.begin; i < range.end; ++i)
    kernels_.typed<T>().rms_norm(x_ + batch_.samples[i].batch_row * hidden_stride_, weights_.final_norm.data(),
                                 shape_.rms_eps, shape_.hidden, norm_ + i * hidden_stride_);
  worker.barrier();
  multiply(worker, weights_.head(),
           {.a = norm_, .lda = hidden_stride_, .rows = samples, .out = logits_, .ldo = vocab_stride_});
  worker.barrier();
}

template <class T>
void TypedForwardPass<T>::sample(Worker& worker, const sched::StepPlan& plan, sched::StepResult& result) {
  for (std::uint32_t i = next_sample_.fetch_add(1, std::memory_order_relaxed); i < batch_.samples.size();
       i = next_sample_.fetch_add(1, std::memory_order_relaxed)) {
    const sched::PlanRow& row = plan.rows[batch_.samples[i].plan_row];
    const sched::SamplingParams& sampling = *row.sampling;
    float* logits = logits_ + i * vocab_stride_;
    if (row.num_output_tokens < static_cast<std::uint32_t>(std::max(sampling.min_tokens, 0)))
      forbid_end(sampling, logits);
    result.tokens[batch_.samples[i].plan_row] =
        samplers_[worker.index()].sample({logits, shape_.vocab}, {.temperature = sampling.temperature,
                                                                  .top_p = sampling.top_p,
                                                                  .top_k = sampling.top_k,
                                                                  .min_p = sampling.min_p,
                                                                  .seed = sampling.seed,
                                                                  .position = row.first_position + row.tokens.size()});
  }
}

/// Before min_tokens neither end of text nor a stop token is chosen.
template <class T>
void TypedForwardPass<T>::forbid_end(const sched::SamplingParams& sampling, float* logits) const {
  const auto forbid = [&](TokenId id) {
    if (id >= 0 && static_cast<std::uint32_t>(id) < shape_.vocab) logits[id] = -INFINITY;
  };
  for (const TokenId id : shape_.eos) forbid(id);
  for (const TokenId id : sampling.stop_token_ids) forbid(id);
}

template class TypedForwardPass<float>;
template class TypedForwardPass<kernels::Bf16>;

}  // namespace tokenstone::engine
