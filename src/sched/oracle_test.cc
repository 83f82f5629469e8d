// The scheduler against a naive twin, over random operations.
//
// The twin knows no hashes, links or counters: the free list is a plain vector, a block's content is the whole token
// prefix written out, and everything is found by searching. Beside it a model of the KV memory records, for each slot,
// which prefix was computed into it; a row may only build on slots that hold exactly its own prefix.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "sched/scheduler.h"
#include "support/check_report.h"

namespace tokenstone::sched {
namespace {

using Tokens = std::vector<TokenId>;

Hash128 colliding_hash(Hash128, std::span<const TokenId>) { return {1, 1}; }

struct NaiveSeq {
  std::uint64_t id = 0;
  Tokens tokens;  // [0] is the cache salt, so that a prefix written out includes it
  std::uint32_t prompt = 0, computed = 0, scheduled = 0, published = 0, max_tokens = 0, min_tokens = 0, preemptions = 0;
  bool ignore_eos = false, running = false, seen = false;
  std::vector<std::uint32_t> table;
  std::uint32_t length() const { return static_cast<std::uint32_t>(tokens.size()) - 1; }
  std::uint32_t outputs() const { return length() - prompt; }
  bool decoding() const { return length() - computed == 1 && computed >= prompt; }
  Tokens prefix(std::uint32_t length) const { return Tokens(tokens.begin(), tokens.begin() + 1 + length); }
};

struct NaiveRow {
  NaiveSeq* seq;
  bool samples;
};

class Naive {
 public:
  explicit Naive(const SchedulerConfig& config) : c_(config) {
    for (std::uint32_t b = 0; b < c_.num_blocks; ++b) free_.push_back(b);
    refs_.resize(c_.num_blocks);
    content_.resize(c_.num_blocks);
  }

  NaiveSeq* lookup(std::uint64_t id) {
    for (auto& s : all_)
      if (s->id == id) return s.get();
    return nullptr;
  }
  void add(NaiveSeq seq) {
    all_.push_back(std::make_unique<NaiveSeq>(std::move(seq)));
    waiting_.push_back(all_.back().get());
  }
  void abort(std::uint64_t id, bool in_flight) {
    NaiveSeq* s = lookup(id);
    if (in_flight && s->scheduled > 0) {
      doomed_.push_back(s);
      s->id = 0;
      std::erase(running_, s);
      return;
    }
    std::erase(running_, s);
    std::erase(waiting_, s);
    give_back(*s);
    forget(s);
  }
  bool reset() {
    if (std::ranges::any_of(refs_, [](int r) { return r > 0; })) return false;
    for (auto& content : content_) content.clear();
    order_.clear();
    return true;
  }

  std::vector<NaiveRow> plan() {
    preempted.clear();
    hit_tokens = query_tokens = 0;
    blocked = 0;
    std::uint32_t budget = c_.max_num_batched_tokens;
    for (const bool decodes : {true, false}) plan_running(decodes, budget);
    if (preempted.empty())
      plan_waiting(budget);
    else
      blocked = waiting_.size();
    std::vector<NaiveRow> rows;
    for (const bool decodes : {true, false})
      for (NaiveSeq* s : running_)
        if (s->scheduled > 0 && s->decoding() == decodes)
          rows.push_back({s, s->computed + s->scheduled == s->length()});
    return rows;
  }

  /// The reason with which the sequence ends, if it does, per sampling row.
  FinishReason take(NaiveRow row, TokenId token, bool& handed_out) {
    NaiveSeq& s = *row.seq;
    s.computed += s.scheduled;
    s.scheduled = 0;
    if (c_.enable_prefix_caching)
      for (; (s.published + 1) * c_.block_size <= s.computed; ++s.published) {
        content_[s.table[s.published]] = s.prefix((s.published + 1) * c_.block_size);
        order_.push_back(s.table[s.published]);
      }
    if (!row.samples) return FinishReason::none;
    s.tokens.push_back(token);
    handed_out = true;
    if (s.outputs() >= s.min_tokens && !s.ignore_eos && token == c_.eos_token_ids[0]) {
      handed_out = false;
      return FinishReason::stop;
    }
    if (s.outputs() >= s.max_tokens || s.length() >= c_.max_model_len || s.length() > c_.num_blocks * c_.block_size)
      return FinishReason::length;
    return FinishReason::none;
  }
  void end_step(const std::vector<NaiveSeq*>& finished) {
    for (NaiveSeq* s : doomed_) give_back(*s), forget(s);
    doomed_.clear();
    for (NaiveSeq* s : finished) give_back(*s), std::erase(running_, s), forget(s);
  }

  const std::vector<std::uint32_t>& free_list() const { return free_; }
  int refs(std::uint32_t block) const { return refs_[block]; }
  bool cached(std::uint32_t block) const { return !content_[block].empty(); }
  const auto& running() const { return running_; }
  const auto& waiting() const { return waiting_; }
  const auto& all() const { return all_; }

  std::vector<std::uint64_t> preempted;
  std::uint64_t hit_tokens = 0, query_tokens = 0;
  std::size_t blocked = 0;

 private:
  std::uint32_t blocks_for(std::uint32_t tokens) const { return (tokens + c_.block_size - 1) / c_.block_size; }
  std::uint32_t clip(std::uint32_t tokens, std::uint32_t budget) const {
    if (c_.long_prefill_token_threshold > 0) tokens = std::min(tokens, c_.long_prefill_token_threshold);
    return std::min(tokens, budget);
  }

  void plan_running(bool decodes, std::uint32_t& budget) {
    std::vector<NaiveSeq*> todo;
    for (NaiveSeq* s : running_)
      if (s->decoding() == decodes) todo.push_back(s);
    for (NaiveSeq* s : todo) {
      if (!s->running || budget == 0) continue;  // a victim of an earlier one
      const std::uint32_t n = clip(s->length() - s->computed, budget);
      while (s->running && blocks_for(s->computed + n) > s->table.size() + free_.size()) {
        NaiveSeq* victim = running_.back();
        running_.pop_back();
        budget += victim->scheduled;
        give_back(*victim);
        ++victim->preemptions;
        waiting_.insert(waiting_.begin(), victim);
        preempted.push_back(victim->id);
      }
      if (!s->running) return;
      while (s->table.size() < blocks_for(s->computed + n)) s->table.push_back(pop());
      s->scheduled = n;
      budget -= n;
    }
  }

  void plan_waiting(std::uint32_t& budget) {
    while (!waiting_.empty() && budget > 0 && running_.size() < c_.max_num_seqs) {
      NaiveSeq& s = *waiting_.front();
      std::vector<std::uint32_t> hits;
      while ((hits.size() + 1) * c_.block_size < s.length()) {
        const auto block = holder(s.prefix((static_cast<std::uint32_t>(hits.size()) + 1) * c_.block_size));
        if (block < 0) break;
        hits.push_back(static_cast<std::uint32_t>(block));
      }
      std::size_t wanted = blocks_for(s.length()) - hits.size();
      for (NaiveSeq* r : running_) wanted += blocks_for(r->length()) - r->table.size();
      const std::size_t idle = std::ranges::count_if(hits, [&](std::uint32_t b) { return refs_[b] == 0; });
      if (wanted > free_.size() - idle) {
        blocked = waiting_.size();
        return;
      }
      for (const std::uint32_t b : hits)
        if (refs_[b]++ == 0) std::erase(free_, b);
      s.table = hits;
      s.published = static_cast<std::uint32_t>(hits.size());
      s.computed = s.published * c_.block_size;
      if (!s.seen && c_.enable_prefix_caching) hit_tokens += s.computed, query_tokens += s.length();
      s.seen = s.running = true;
      s.scheduled = clip(s.length() - s.computed, budget);
      budget -= s.scheduled;
      while (s.table.size() < blocks_for(s.computed + s.scheduled)) s.table.push_back(pop());
      waiting_.erase(waiting_.begin());
      running_.push_back(&s);
    }
  }

  int holder(const Tokens& prefix) const {
    for (std::size_t i = order_.size(); i-- > 0;)
      if (content_[order_[i]] == prefix) return static_cast<int>(order_[i]);
    return -1;
  }
  std::uint32_t pop() {
    const std::uint32_t block = free_.front();
    free_.erase(free_.begin());
    content_[block].clear();
    std::erase(order_, block);
    refs_[block] = 1;
    return block;
  }
  void give_back(NaiveSeq& s) {
    for (std::size_t i = s.table.size(); i-- > 0;) {
      const std::uint32_t block = s.table[i];
      if (--refs_[block] > 0) continue;
      free_.insert(cached(block) ? free_.end() : free_.begin(), block);
    }
    s.table.clear();
    s.computed = s.scheduled = s.published = 0;
    s.running = false;
  }
  void forget(NaiveSeq* s) {
    std::erase_if(all_, [s](const auto& owned) { return owned.get() == s; });
  }

  SchedulerConfig c_;
  std::vector<std::unique_ptr<NaiveSeq>> all_;
  std::vector<NaiveSeq*> waiting_, running_, doomed_;
  std::vector<std::uint32_t> free_;
  std::vector<int> refs_;
  std::vector<Tokens> content_;       // empty: none
  std::vector<std::uint32_t> order_;  // cached blocks, last published last
};

/// The KV memory: what each slot was computed from.
class Memory {
 public:
  explicit Memory(const SchedulerConfig& c)
      : block_size_(c.block_size), slots_(std::size_t{c.num_blocks} * c.block_size) {}
  void run(const PlanRow& row, const NaiveSeq& seq) {
    std::uint64_t prefix = static_cast<std::uint64_t>(seq.tokens[0]) + 0x9E3779B97F4A7C15ULL;
    const std::uint32_t end = row.first_position + static_cast<std::uint32_t>(row.tokens.size());
    for (std::uint32_t p = 0; p < end; ++p) {
      prefix = (prefix ^ static_cast<std::uint64_t>(seq.tokens[p + 1] + 1)) * 0xBF58476D1CE4E5B9ULL;
      prefix ^= prefix >> 29;
      std::uint64_t& slot = slots_.at(std::size_t{row.blocks[p / block_size_].value} * block_size_ + p % block_size_);
      if (p >= row.first_position)
        slot = prefix;
      else
        ASSERT_EQ(slot, prefix) << "sequence " << seq.id << " builds on foreign data at position " << p;
    }
  }

 private:
  std::uint32_t block_size_;
  std::vector<std::uint64_t> slots_;
};

class Episode {
 public:
  Episode(std::uint64_t seed, std::uint64_t number)
      : rng_(seed, 1000 + number), config_(random_config()), scheduler_(config_), naive_(config_), memory_(config_) {}

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      one_operation();
      compare_state();
    }
  }

  static inline std::uint64_t hits = 0, preemptions = 0, evictions = 0, finished = 0, resets = 0, in_flight_aborts = 0;

 private:
  std::uint32_t pick(std::uint32_t lo, std::uint32_t hi) {
    return static_cast<std::uint32_t>(rng_.uniform_int(lo, hi));
  }

  SchedulerConfig random_config() {
    SchedulerConfig c;
    c.block_size = pick(1, 4);
    c.num_blocks = pick(3, 14);
    c.max_num_seqs = pick(1, 6);
    c.max_num_batched_tokens = c.max_num_seqs + pick(0, 12);
    c.long_prefill_token_threshold = pick(0, 1) * pick(1, 6);
    c.max_model_len = pick(4, c.block_size * c.num_blocks + 3);
    c.enable_prefix_caching = pick(0, 5) > 0;
    c.eos_token_ids = {0};
    if (pick(0, 3) == 0) c.block_hash = &colliding_hash;
    return c;
  }

  void one_operation() {
    const std::uint32_t dice = pick(0, 99);
    if (dice < 32) return add();
    if (dice < 84) return step();
    if (dice < 90) return abort_one(false);
    if (dice < 95) return reset();
    return use_wrongly();
  }

  void add() {
    if (naive_.all().size() > 12) return step();
    NaiveSeq s;
    s.id = ++last_id_;
    s.prompt = pick(1, std::min(config_.max_model_len, 24u));
    s.tokens.push_back(static_cast<TokenId>(pick(0, 9) == 0));
    const std::uint32_t vocabulary = pick(1, 3);  // small: prefixes collide
    for (std::uint32_t i = 0; i < s.prompt; ++i) s.tokens.push_back(static_cast<TokenId>(pick(1, vocabulary)));
    s.max_tokens = pick(1, 16);
    s.min_tokens = pick(0, 3) == 0 ? pick(0, s.max_tokens) : 0;
    s.ignore_eos = pick(0, 2) == 0;
    NewRequest request{.seq = SeqId{s.id}, .prompt = Tokens(s.tokens.begin() + 1, s.tokens.end())};
    request.cache_salt = static_cast<std::uint64_t>(s.tokens[0]);
    request.sampling.max_tokens = static_cast<std::int32_t>(s.max_tokens);
    request.sampling.min_tokens = static_cast<std::int32_t>(s.min_tokens);
    request.sampling.ignore_eos = s.ignore_eos;
    const bool fits = s.prompt + 1 <= config_.max_model_len && s.prompt <= config_.num_blocks * config_.block_size;
    ASSERT_EQ(scheduler_.add(std::move(request)).has_value(), fits);
    if (fits) naive_.add(std::move(s));
  }

  void step() {
    const StepPlan& plan = scheduler_.schedule(0);
    const std::vector<NaiveRow> rows = naive_.plan();
    ASSERT_NO_FATAL_FAILURE(compare_plan(plan, rows));
    if (plan.empty()) return;
    StepResult result;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(memory_.run(plan.rows[i], *rows[i].seq));
      result.tokens.push_back(rows[i].samples ? static_cast<TokenId>(pick(0, 12) == 0 ? 0 : pick(1, 2)) : kNoToken);
    }
    if (pick(0, 9) == 0) abort_one(true);
    apply(rows, result);
  }

  void apply(const std::vector<NaiveRow>& rows, const StepResult& result) {
    const auto outputs = scheduler_.apply(result);
    std::vector<NaiveSeq*> ended;
    std::size_t next = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].seq->id == 0) continue;  // aborted in flight
      bool handed_out = false;
      const FinishReason reason = naive_.take(rows[i], result.tokens[i], handed_out);
      if (!rows[i].samples) continue;
      ASSERT_LT(next, outputs.size());
      const SeqOutput& output = outputs[next++];
      ASSERT_EQ(output.seq.value, rows[i].seq->id);
      ASSERT_EQ(output.reason, reason);
      ASSERT_EQ(output.tokens.size(), handed_out ? 1u : 0u);
      ASSERT_TRUE(!handed_out || output.tokens[0] == result.tokens[i]);
      ASSERT_EQ(output.counters.output_tokens, rows[i].seq->outputs());
      ASSERT_EQ(output.counters.preemptions, rows[i].seq->preemptions);
      if (reason != FinishReason::none) ended.push_back(rows[i].seq);
    }
    ASSERT_EQ(next, outputs.size());
    finished += ended.size();
    naive_.end_step(ended);
  }

  void abort_one(bool in_flight) {
    std::vector<std::uint64_t> ids;
    for (const auto& s : naive_.all())
      if (s->id != 0) ids.push_back(s->id);
    if (ids.empty()) return;
    const std::uint64_t id = ids[pick(0, static_cast<std::uint32_t>(ids.size()) - 1)];
    naive_.abort(id, in_flight);
    ASSERT_TRUE(pick(0, 1) == 0 ? scheduler_.abort(SeqId{id}) : scheduler_.finish(SeqId{id}));
    ASSERT_FALSE(scheduler_.abort(SeqId{id})) << "a second abort finds nothing";
    if (in_flight) ++in_flight_aborts;
  }

  void reset() {
    const bool done = scheduler_.reset_prefix_cache();
    ASSERT_EQ(done, naive_.reset());
    if (done) ++resets;
  }

  void use_wrongly() {
    ASSERT_FALSE(scheduler_.abort(SeqId{last_id_ + 1}));
    ASSERT_FALSE(scheduler_.add({.seq = SeqId{last_id_ + 1}, .prompt = {}}).has_value());
    if (naive_.all().empty()) return;
    ASSERT_FALSE(scheduler_.add({.seq = SeqId{naive_.all().front()->id}, .prompt = {1}}).has_value());
  }

  void compare_plan(const StepPlan& plan, const std::vector<NaiveRow>& rows) {
    ASSERT_EQ(plan.rows.size(), rows.size());
    std::uint32_t prefill = 0, decodes = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const PlanRow& row = plan.rows[i];
      const NaiveSeq& s = *rows[i].seq;
      ASSERT_EQ(row.seq.value, s.id);
      ASSERT_EQ(row.first_position, s.computed);
      ASSERT_TRUE(std::equal(row.tokens.begin(), row.tokens.end(), s.tokens.begin() + 1 + s.computed,
                             s.tokens.begin() + 1 + s.computed + s.scheduled));
      ASSERT_TRUE(std::ranges::equal(row.blocks, s.table, {}, &BlockId::value));
      ASSERT_EQ(row.samples, rows[i].samples);
      ASSERT_EQ(row.prefill, !s.decoding());
      ASSERT_EQ(row.num_output_tokens, s.outputs());
      (row.prefill ? prefill : decodes) += static_cast<std::uint32_t>(row.tokens.size());
    }
    ASSERT_EQ(plan.num_prefill_tokens, prefill);
    ASSERT_EQ(plan.num_decode_sequences, decodes);
    ASSERT_LE(plan.num_batched_tokens, config_.max_num_batched_tokens);
    ASSERT_TRUE(std::ranges::equal(plan.preempted, naive_.preempted, {}, &SeqId::value));
    ASSERT_EQ(plan.hit_tokens, naive_.hit_tokens);
    ASSERT_EQ(plan.query_tokens, naive_.query_tokens);
    ASSERT_EQ(plan.kv_blocked_requests, naive_.blocked);
    std::uint64_t wasted = 0;
    for (const NaiveSeq* s : naive_.running())
      wasted += s->table.size() * config_.block_size - s->computed - s->scheduled;
    ASSERT_EQ(plan.wasted_slots, wasted);
    hits += plan.hit_tokens;
    preemptions += plan.preemptions;
    evictions += plan.evictions;
  }

  void compare_state() {
    const BlockPool& pool = scheduler_.pool();
    const std::string problem = pool.audit();
    ASSERT_TRUE(problem.empty()) << problem;
    ASSERT_TRUE(std::ranges::equal(pool.free_order(), naive_.free_list(), {}, &BlockId::value));
    std::uint64_t refs = 0, tables = 0;
    for (std::uint32_t b = 0; b < config_.num_blocks; ++b) {
      ASSERT_EQ(pool.ref_count(BlockId{b}), static_cast<std::uint32_t>(naive_.refs(b)));
      ASSERT_EQ(pool.is_cached(BlockId{b}), naive_.cached(b));
      refs += pool.ref_count(BlockId{b});
    }
    for (const auto& s : naive_.all()) tables += scheduler_.blocks_of(SeqId{s->id}).size();
    ASSERT_EQ(refs, tables);
    const SchedulerCounts counts = scheduler_.counts();
    ASSERT_EQ(counts.blocks_active + counts.blocks_cached_idle + counts.blocks_free, config_.num_blocks);
    ASSERT_EQ(counts.running, naive_.running().size());
    ASSERT_EQ(counts.waiting, naive_.waiting().size());
  }

  Rng rng_;
  SchedulerConfig config_;
  Scheduler scheduler_;
  Naive naive_;
  Memory memory_;
  std::uint64_t last_id_ = 0;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(SchedulerOracle, AgreesWithTheNaiveTwinOverRandomOperations) {
  constexpr int per_episode = 2'000;
  constexpr int episodes = kSanitized ? 50 : 500;
  for (int i = 0; i < episodes && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(fmt::format("episode {}", i));
    Episode(1, static_cast<std::uint64_t>(i)).run(per_episode);
  }
  constexpr double operations = static_cast<double>(per_episode) * episodes;
  // The run must have been in all the corners, or it proves little.
  EXPECT_GT(Episode::hits, 1'000u);
  EXPECT_GT(Episode::preemptions, 1'000u);
  EXPECT_GT(Episode::evictions, 1'000u);
  EXPECT_GT(Episode::finished, 1'000u);
  EXPECT_GT(Episode::resets, 100u);
  EXPECT_GT(Episode::in_flight_aborts, 1'000u);
  if (kSanitized) return;  // fewer operations than the check asks for, so that the run stays quick
  testing::report_check({.id = "spine.oracle_ops",
                         .value = operations,
                         .n = operations,
                         .unit = "operations",
                         .op = ">=",
                         .target = 1e6,
                         .pass = operations >= 1e6 && !HasFailure()});
}

}  // namespace
}  // namespace tokenstone::sched
