#include "sched/scheduler.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "sched/sequence.h"

namespace tokenstone::sched {
namespace {

std::uint64_t longest_sequence(const SchedulerConfig& config) {
  // The last token of a sequence needs no slot: its K and V would be computed by the step that follows.
  return std::min<std::uint64_t>(config.max_model_len, config.kv_tokens() + 1);
}

std::uint32_t largest_chunk(const SchedulerConfig& config) {
  const std::uint32_t threshold = config.long_prefill_token_threshold;
  return threshold == 0 ? config.max_num_batched_tokens : std::min(threshold, config.max_num_batched_tokens);
}

SchedulerConfig checked(SchedulerConfig config) {
  const Status status = validate(config);
  TS_CHECK(status.has_value(), status.error().message);
  return config;
}

SeqCounters counters_of(const Sequence& seq) {
  return {.arrival = seq.arrival,
          .first_scheduled = seq.first_scheduled,
          .prompt_tokens = seq.num_prompt,
          .cached_tokens = seq.cached_tokens,
          .output_tokens = seq.num_output(),
          .chunks = seq.chunks,
          .preemptions = seq.preemptions};
}

}  // namespace

Scheduler::Scheduler(SchedulerConfig config)
    : config_(checked(std::move(config))),
      pool_(config_.num_blocks, config_.block_size),
      watch_(static_cast<std::uint32_t>(longest_sequence(config_)), largest_chunk(config_)),
      longest_sequence_(longest_sequence(config_)),
      waiting_(std::make_unique<WaitingQueue>()) {}

Scheduler::~Scheduler() = default;

// --- requests come and go ------------------------------------------------------------------------------

Status Scheduler::check_fits(std::size_t prompt_tokens) const {
  if (prompt_tokens + 1 > config_.max_model_len)
    return fail(
        ErrorKind::too_large,
        fmt::format("the prompt has {} tokens and the context (max_model_len) holds {} with at least one token of "
                    "answer; shorten the prompt or raise --max-model-len",
                    prompt_tokens, config_.max_model_len),
        "prompt");
  if (prompt_tokens > config_.kv_tokens())
    return fail(
        ErrorKind::too_large,
        fmt::format("the prompt has {} tokens and the whole KV cache holds {} ({} blocks of {}); shorten the prompt or "
                    "raise --kv-cache-memory",
                    prompt_tokens, config_.kv_tokens(), config_.num_blocks, config_.block_size),
        "prompt");
  return {};
}

Status Scheduler::add(NewRequest request) {
  if (request.prompt.empty()) return usage_error("a prompt needs at least one token; it is empty", "prompt");
  if (sequences_.contains(request.seq))
    return usage_error(
        fmt::format("sequence {} is here already; give each request an id of its own", request.seq.value),
        "request_id");
  TS_TRY_STATUS(check_fits(request.prompt.size()));
  auto seq = std::make_unique<Sequence>();
  seq->id = request.seq;
  seq->sampling = std::move(request.sampling);
  seq->cache_salt = request.cache_salt;
  seq->arrival = request.arrival;
  seq->tokens = std::move(request.prompt);
  seq->num_prompt = seq->num_tokens();
  waiting_->push_back(seq.get());
  sequences_.emplace(request.seq, std::move(seq));
  return {};
}

bool Scheduler::abort(SeqId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return false;
  Sequence& seq = *found->second;
  if (in_flight_ && seq.scheduled > 0) {
    // The plan's spans point into it: its blocks and tokens stay until the step is applied.
    seq.dropped = true;
    std::erase(running_, &seq);
    dropped_.push_back(std::move(found->second));
  } else if (seq.is_running) {
    std::erase(running_, &seq);
    let_go(seq);
  } else {
    waiting_->remove(&seq);
  }
  sequences_.erase(found);
  watch_.on_progress();
  return true;
}

/// Frees a sequence's blocks; what it would compute next starts from nothing.
void Scheduler::let_go(Sequence& seq) {
  pool_.release(seq.blocks);
  seq.blocks.clear();
  seq.computed = seq.scheduled = seq.published = 0;
  seq.is_running = false;
}

// --- planning ------------------------------------------------------------------------------------------

const StepPlan& Scheduler::schedule(TimeNs now) {
  TS_CHECK(!in_flight_, "the last plan was not applied");
  plan_.preempted.clear();
  plan_.hit_tokens = plan_.query_tokens = 0;
  plan_.kv_blocked_requests = 0;
  const std::uint64_t evictions = pool_.evictions();

  std::uint32_t budget = config_.max_num_batched_tokens;
  schedule_running(true, budget);
  schedule_running(false, budget);
  if (plan_.preempted.empty())
    schedule_waiting(now, budget);
  else
    plan_.kv_blocked_requests = waiting_->size();
  plan_.evictions = static_cast<std::uint32_t>(pool_.evictions() - evictions);
  fill_plan();

  TS_CHECK(!plan_.empty() || idle(), "nothing can be scheduled though work is there: " + describe());
  if (plan_.empty()) return plan_;
  watch_.on_step();
  TS_CHECK(!watch_.stuck(), "livelock, no sequence gets a token: " + describe());
  in_flight_ = true;
  plan_.step_id = totals_.steps++;
  return plan_;
}

void Scheduler::schedule_running(bool decodes, std::uint32_t& budget) {
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& seq = *running_[i];
    if (seq.scheduled > 0 || seq.decodes() != decodes) continue;
    const std::uint32_t tokens = clip(seq.remaining(), budget);
    if (!grow(seq, tokens, budget)) return;  // it was the last, and preempted itself
    seq.scheduled = tokens;
    budget -= tokens;
  }
}

std::uint32_t Scheduler::clip(std::uint32_t tokens, std::uint32_t budget) const {
  const std::uint32_t threshold = config_.long_prefill_token_threshold;
  return std::min({tokens, budget, threshold == 0 ? tokens : threshold});
}

/// Finds blocks for the next tokens of a running sequence, at the cost of those admitted last.
bool Scheduler::grow(Sequence& seq, std::uint32_t tokens, std::uint32_t& budget) {
  const std::uint32_t wanted = blocks_for(std::uint64_t{seq.computed} + tokens);
  while (wanted > seq.blocks.size() + pool_.num_available()) {
    TS_CHECK(running_.size() > 1, "a lone sequence always fits: " + describe());
    Sequence& victim = *running_.back();
    running_.pop_back();
    preempt(victim, budget);
    if (&victim == &seq) return false;
  }
  allocate_for(seq, tokens);
  return true;
}

void Scheduler::preempt(Sequence& seq, std::uint32_t& budget) {
  budget += seq.scheduled;
  let_go(seq);
  ++seq.preemptions;
  ++totals_.preemptions;
  waiting_->push_front(&seq);
  plan_.preempted.push_back(seq.id);
}

void Scheduler::schedule_waiting(TimeNs now, std::uint32_t& budget) {
  if (waiting_->empty()) return;
  std::uint64_t promised = promised_blocks();
  while (!waiting_->empty() && budget > 0 && running_.size() < config_.max_num_seqs) {
    Sequence& seq = *waiting_->front();
    find_prefix(seq);
    if (!fits(seq, promised)) {
      plan_.kv_blocked_requests = waiting_->size();
      return;
    }
    const auto hit_tokens = static_cast<std::uint32_t>(hits_.size()) * config_.block_size;
    const std::uint32_t tokens = clip(seq.num_tokens() - hit_tokens, budget);
    waiting_->remove(&seq);
    admit(seq, tokens, now);
    promised += blocks_for(seq.num_tokens()) - seq.blocks.size();
    budget -= tokens;
  }
}

/// The longest cached prefix, into `hits_`. At least one token is left to compute, because its logits are needed.
void Scheduler::find_prefix(Sequence& seq) {
  hits_.clear();
  if (!config_.enable_prefix_caching) return;
  const std::uint32_t most = (seq.num_tokens() - 1) / config_.block_size;
  Prefix parent = root_prefix(seq.cache_salt);
  for (std::uint32_t i = 0; i < most; ++i) {
    hash_to(seq, i + 1);
    const auto tokens =
        std::span<const TokenId>(seq.tokens).subspan(std::size_t{i} * config_.block_size, config_.block_size);
    const auto block = pool_.find(parent, seq.hashes[i], tokens);
    if (!block) return;
    hits_.push_back(*block);
    parent = pool_.prefix_of(*block);
  }
}

/// Whether the whole prompt fits beside what is promised. A hit block that is idle stops being available when it is
/// taken, so it counts as consumption.
bool Scheduler::fits(const Sequence& seq, std::uint64_t promised) const {
  const auto idle_hits = std::ranges::count_if(hits_, [this](BlockId b) { return pool_.ref_count(b) == 0; });
  const std::uint64_t available = pool_.num_available() - static_cast<std::uint64_t>(idle_hits);
  const std::uint64_t whole = blocks_for(seq.num_tokens()) - hits_.size();
  return whole + promised <= available;
}

void Scheduler::admit(Sequence& seq, std::uint32_t tokens, TimeNs now) {
  const std::uint64_t longest =
      std::min<std::uint64_t>(longest_sequence_, std::uint64_t{seq.num_prompt} +
                                                     static_cast<std::uint64_t>(std::max(seq.sampling.max_tokens, 0)));
  seq.tokens.reserve(std::max<std::uint64_t>(longest, seq.tokens.size()));
  seq.blocks.reserve(blocks_for(longest));
  if (config_.enable_prefix_caching) seq.hashes.reserve(longest / config_.block_size);

  for (const BlockId block : hits_) pool_.acquire(block);
  seq.blocks.assign(hits_.begin(), hits_.end());
  seq.published = static_cast<std::uint32_t>(hits_.size());
  seq.published_prefix = hits_.empty() ? root_prefix(seq.cache_salt) : pool_.prefix_of(hits_.back());
  seq.computed = seq.prefill_start = seq.published * config_.block_size;
  if (!seq.was_admitted()) {
    seq.first_scheduled = now;
    seq.cached_tokens = seq.computed;
    plan_.hit_tokens += seq.computed;
    if (config_.enable_prefix_caching) plan_.query_tokens += seq.num_tokens();
  }
  allocate_for(seq, tokens);
  seq.scheduled = tokens;
  seq.is_running = true;
  running_.push_back(&seq);
}

void Scheduler::allocate_for(Sequence& seq, std::uint32_t tokens) {
  const std::uint32_t wanted = blocks_for(std::uint64_t{seq.computed} + tokens);
  while (seq.blocks.size() < wanted) seq.blocks.push_back(pool_.allocate());
}

/// Blocks that prompts under way will still need.
std::uint64_t Scheduler::promised_blocks() const {
  std::uint64_t promised = 0;
  for (const Sequence* seq : running_) promised += blocks_for(seq->num_tokens()) - seq->blocks.size();
  return promised;
}

std::uint32_t Scheduler::blocks_for(std::uint64_t tokens) const {
  return static_cast<std::uint32_t>((tokens + config_.block_size - 1) / config_.block_size);
}

// --- the plan ------------------------------------------------------------------------------------------

void Scheduler::fill_plan() {
  plan_.rows.clear();
  plan_sequences_.clear();
  plan_.num_prefill_tokens = plan_.num_decode_sequences = plan_.chunked = plan_.prefilling_queue_len = 0;
  std::uint64_t used_slots_at_ends = 0;
  for (Sequence* seq : running_) {
    if (seq->decodes() && seq->scheduled > 0) add_row(*seq);
    used_slots_at_ends += std::uint64_t{seq->blocks.size()} * config_.block_size - seq->computed - seq->scheduled;
  }
  plan_.num_decode_sequences = static_cast<std::uint32_t>(plan_.rows.size());
  for (Sequence* seq : running_) {
    if (seq->decodes()) continue;
    ++plan_.prefilling_queue_len;
    if (seq->scheduled == 0) continue;
    add_row(*seq);
    plan_.num_prefill_tokens += seq->scheduled;
    if (seq->scheduled < seq->num_tokens() - seq->prefill_start) ++plan_.chunked;
  }
  plan_.num_batched_tokens = plan_.num_prefill_tokens + plan_.num_decode_sequences;
  plan_.waiting_queue_len = waiting_->size();
  plan_.running_queue_len = static_cast<std::uint32_t>(running_.size());
  plan_.blocks_active = pool_.num_active();
  plan_.blocks_cached_idle = pool_.num_cached_idle();
  plan_.blocks_free = pool_.num_available() - pool_.num_cached_idle();
  plan_.preemptions = static_cast<std::uint32_t>(plan_.preempted.size());
  plan_.wasted_slots = used_slots_at_ends;
  plan_.allocated_slots = std::uint64_t{plan_.blocks_active} * config_.block_size;
  totals_.hit_tokens += plan_.hit_tokens;
  totals_.query_tokens += plan_.query_tokens;
}

void Scheduler::add_row(Sequence& seq) {
  plan_.rows.push_back({.seq = seq.id,
                        .first_position = seq.computed,
                        .tokens = std::span<const TokenId>(seq.tokens).subspan(seq.computed, seq.scheduled),
                        .blocks = seq.blocks,
                        .sampling = &seq.sampling,
                        .num_output_tokens = seq.num_output(),
                        .samples = seq.scheduled == seq.remaining(),
                        .prefill = !seq.decodes()});
  plan_sequences_.push_back(&seq);
}

// --- results -------------------------------------------------------------------------------------------

std::span<const SeqOutput> Scheduler::apply(const StepResult& result) {
  TS_CHECK(in_flight_, "there is no plan to apply");
  TS_CHECK(result.tokens.size() == plan_.rows.size(), "one token per row, kNoToken where a row does not sample");
  in_flight_ = false;
  outputs_.clear();
  output_tokens_.clear();
  output_tokens_.reserve(plan_.rows.size());  // spans into it are handed out
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    Sequence& seq = *plan_sequences_[i];
    if (seq.dropped) continue;
    if (plan_.rows[i].prefill && seq.num_output() == 0) ++seq.chunks;
    seq.computed += seq.scheduled;
    seq.scheduled = 0;
    publish_full_blocks(seq);
    if (!plan_.rows[i].samples) continue;
    const std::size_t handed_out = output_tokens_.size();
    const FinishReason reason = accept(seq, result.tokens[i]);
    outputs_.push_back({.seq = seq.id,
                        .tokens = std::span<const TokenId>(output_tokens_).subspan(handed_out),
                        .reason = reason,
                        .counters = counters_of(seq)});
    if (reason != FinishReason::none) finished_.push_back(seq.id);
  }
  remove_finished();
  return outputs_;
}

void Scheduler::hash_to(Sequence& seq, std::uint32_t full_blocks) {
  while (seq.hashes.size() < full_blocks) {
    const std::size_t i = seq.hashes.size();
    const Hash128 parent = i == 0 ? hash_root(seq.cache_salt) : seq.hashes[i - 1];
    seq.hashes.push_back(config_.block_hash(
        parent, std::span<const TokenId>(seq.tokens).subspan(i * config_.block_size, config_.block_size)));
  }
}

void Scheduler::publish_full_blocks(Sequence& seq) {
  if (!config_.enable_prefix_caching) return;
  const std::uint32_t full = seq.computed / config_.block_size;
  hash_to(seq, full);
  for (; seq.published < full; ++seq.published) {
    const std::size_t first = std::size_t{seq.published} * config_.block_size;
    seq.published_prefix = pool_.publish(seq.blocks[seq.published], seq.published_prefix, seq.hashes[seq.published],
                                         std::span<const TokenId>(seq.tokens).subspan(first, config_.block_size));
  }
}

/// Appends a sampled token and says whether the sequence ends with it. The order of the tests is vLLM's.
FinishReason Scheduler::accept(Sequence& seq, TokenId token) {
  TS_CHECK(token != kNoToken, "a row that samples has a token");
  seq.tokens.push_back(token);
  watch_.on_progress();
  const SamplingParams& sampling = seq.sampling;
  const std::uint32_t outputs = seq.num_output();
  if (sampling.min_tokens <= 0 || outputs >= static_cast<std::uint32_t>(sampling.min_tokens)) {
    const auto is_in = [token](const std::vector<TokenId>& ids) { return std::ranges::find(ids, token) != ids.end(); };
    if ((!sampling.ignore_eos && is_in(config_.eos_token_ids)) || is_in(sampling.stop_token_ids))
      return FinishReason::stop;
  }
  output_tokens_.push_back(token);
  const bool enough = sampling.max_tokens <= 0 || outputs >= static_cast<std::uint32_t>(sampling.max_tokens);
  return enough || seq.num_tokens() >= longest_sequence_ ? FinishReason::length : FinishReason::none;
}

void Scheduler::remove_finished() {
  for (const std::unique_ptr<Sequence>& seq : dropped_) let_go(*seq);
  dropped_.clear();
  if (finished_.empty()) return;
  for (const SeqId id : finished_) let_go(*sequences_.at(id));
  std::erase_if(running_, [](const Sequence* seq) { return !seq->is_running; });
  for (const SeqId id : finished_) sequences_.erase(id);
  finished_.clear();
}

// --- what others may see -------------------------------------------------------------------------------

bool Scheduler::idle() const { return running_.empty() && waiting_->empty(); }

SchedulerCounts Scheduler::counts() const {
  SchedulerCounts counts = totals_;
  counts.running = static_cast<std::uint32_t>(running_.size());
  counts.waiting = waiting_->size();
  counts.blocks_active = pool_.num_active();
  counts.blocks_cached_idle = pool_.num_cached_idle();
  counts.blocks_free = pool_.num_available() - pool_.num_cached_idle();
  counts.evictions = pool_.evictions();
  return counts;
}

std::span<const BlockId> Scheduler::blocks_of(SeqId seq) const {
  const auto found = sequences_.find(seq);
  return found == sequences_.end() ? std::span<const BlockId>{} : std::span<const BlockId>(found->second->blocks);
}

std::string Scheduler::describe() const {
  std::string text = fmt::format("{} running, {} waiting, blocks {} active, {} available of {}", running_.size(),
                                 waiting_->size(), pool_.num_active(), pool_.num_available(), pool_.num_blocks());
  if (!waiting_->empty()) text += fmt::format("; at the head {} tokens", waiting_->front()->num_tokens());
  if (!running_.empty())
    text += fmt::format("; the oldest has {} of {} tokens computed", running_.front()->computed,
                        running_.front()->num_tokens());
  return text;
}

}  // namespace tokenstone::sched
