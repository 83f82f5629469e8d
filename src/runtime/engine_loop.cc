#include "runtime/engine_loop.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"
#include "sched/scheduler.h"

namespace tokenstone::runtime {
namespace {

using sched::FinishReason;
using sched::SamplingParams;

Status check_prompt(const std::vector<TokenId>& prompt) {
  if (prompt.empty()) return usage_error("a prompt needs at least one token; it is empty: send some text", "prompt");
  for (const TokenId token : prompt)
    if (token < 0) return usage_error(fmt::format("token ids start at 0; the prompt has {}", token), "prompt");
  return {};
}

Status out_of_range(std::string_view name, std::string_view range, double value) {
  return usage_error(fmt::format("{} must be {}; it is {}", name, range, value), std::string(name));
}

Status check_sampling(const SamplingParams& s) {
  if (!std::isfinite(s.temperature) || s.temperature < 0)
    return out_of_range("temperature", "0 or more", s.temperature);
  if (!(s.top_p > 0 && s.top_p <= 1)) return out_of_range("top_p", "above 0 and at most 1", s.top_p);
  if (!(s.min_p >= 0 && s.min_p <= 1)) return out_of_range("min_p", "from 0 to 1", s.min_p);
  if (s.top_k < -1) return out_of_range("top_k", "1 or more, or 0 or -1 for all tokens", s.top_k);
  if (s.max_tokens < 0) return out_of_range("max_tokens", "0 or more", s.max_tokens);
  if (s.min_tokens < 0) return out_of_range("min_tokens", "0 or more", s.min_tokens);
  if (s.min_tokens > s.max_tokens)
    return usage_error(
        fmt::format("min_tokens must be at most max_tokens, which is {}; it is {}", s.max_tokens, s.min_tokens),
        "min_tokens");
  for (const std::string& stop : s.stop)
    if (stop.empty()) return usage_error("a stop string must not be empty; leave it out", "stop");
  return {};
}

}  // namespace

struct EngineLoop::Impl {
  Impl(Loop& l, sched::Scheduler& s, Executor& e, OutputProcessor* p, record::StepSink* r)
      : loop(l), scheduler(s), executor(e), processor(p), steps(r) {}

  /// A request from its submission to its last output.
  struct Live {
    EngineSink* sink = nullptr;
    EngineTiming timing;
    bool has_text_state = false;  ///< the output processor knows it
  };
  /// One sink call to come.
  struct Delivery {
    SeqId seq;
    std::span<const TokenId> tokens;
    FinishReason reason = FinishReason::none;
    std::string text, stop_reason;
  };

  void wake();
  void run_step();
  void take_result(TimeNs start, TimeNs planned, const sched::StepResult& result);
  void take_output(const sched::SeqOutput& output, Delivery& delivery);
  void take_text(SeqId seq, Live& live, Delivery& delivery);
  void update_timing(Live& live, const sched::SeqOutput& output);
  void deliver(const Delivery& delivery, TimeNs at);
  void count_finish(FinishReason reason);
  record::StepRecord record_of(const sched::StepPlan& plan) const;
  void forget_text(SeqId seq, Live& live);

  /// Runs `fn` on the loop unless the engine is gone by then.
  template <class Fn>
  auto guarded(Fn fn) {
    return [guard = std::weak_ptr<int>(alive), fn = std::move(fn)]() mutable {
      if (!guard.expired()) fn();
    };
  }

  Loop& loop;
  sched::Scheduler& scheduler;
  Executor& executor;
  OutputProcessor* processor;
  record::StepSink* steps;
  std::shared_ptr<int> alive = std::make_shared<int>(0);
  std::unordered_map<SeqId, Live> live;
  std::vector<Delivery> deliveries;
  std::uint64_t last_seq = 0;
  bool step_pending = false;  ///< a step is posted or under way
  TimeNs origin = 0;
  TimeNs step_end = 0;
  EngineStats totals;
};

EngineLoop::EngineLoop(Loop& loop, sched::Scheduler& scheduler, Executor& executor, OutputProcessor* processor,
                       record::StepSink* steps)
    : impl_(std::make_unique<Impl>(loop, scheduler, executor, processor, steps)) {}

EngineLoop::~EngineLoop() = default;

// --- requests ------------------------------------------------------------------------------------------

Result<SeqId> EngineLoop::submit(EngineRequest request, EngineSink& sink) {
  Impl& m = *impl_;
  TS_TRY_STATUS(check_prompt(request.prompt));
  TS_TRY_STATUS(check_sampling(request.sampling));
  TS_TRY_STATUS(m.scheduler.check_fits(request.prompt.size()));
  const SeqId seq{++m.last_seq};
  Impl::Live live{.sink = &sink};
  live.timing.arrival = m.loop.now();
  live.timing.prompt_tokens = static_cast<std::int32_t>(request.prompt.size());
  if (request.sampling.max_tokens == 0) {
    m.live.emplace(seq, live);
    m.loop.post(m.guarded([&m, seq] { m.deliver({.seq = seq, .reason = FinishReason::length}, m.loop.now()); }));
    return seq;
  }
  if (m.processor != nullptr) {
    m.processor->start(seq, request.sampling);
    live.has_text_state = true;
  }
  const Status added = m.scheduler.add({.seq = seq,
                                        .prompt = std::move(request.prompt),
                                        .sampling = std::move(request.sampling),
                                        .arrival = live.timing.arrival,
                                        .cache_salt = request.cache_salt});
  TS_CHECK(added.has_value(), "a checked request is accepted");
  m.live.emplace(seq, live);
  m.wake();
  return seq;
}

void EngineLoop::cancel(SeqId seq) {
  Impl& m = *impl_;
  const auto found = m.live.find(seq);
  if (found == m.live.end()) return;
  m.forget_text(seq, found->second);
  m.live.erase(found);
  m.scheduler.abort(seq);
  m.count_finish(FinishReason::abort);
}

bool EngineLoop::reset_prefix_cache() { return impl_->scheduler.reset_prefix_cache(); }

EngineStats EngineLoop::stats() const {
  const sched::SchedulerCounts counts = impl_->scheduler.counts();
  EngineStats stats = impl_->totals;
  stats.steps = counts.steps;
  stats.preemptions = counts.preemptions;
  stats.prefix_query_tokens = counts.query_tokens;
  stats.prefix_hit_tokens = counts.hit_tokens;
  stats.evictions = counts.evictions;
  stats.running = counts.running;
  stats.waiting = counts.waiting;
  stats.num_blocks = impl_->scheduler.config().num_blocks;
  stats.block_size = impl_->scheduler.config().block_size;
  stats.blocks_active = counts.blocks_active;
  return stats;
}

bool EngineLoop::idle() const { return impl_->live.empty() && impl_->scheduler.idle() && !impl_->step_pending; }
void EngineLoop::set_step_origin(TimeNs origin) { impl_->origin = origin; }
void EngineLoop::set_step_sink(record::StepSink* steps) { impl_->steps = steps; }

// --- steps ---------------------------------------------------------------------------------------------

void EngineLoop::Impl::wake() {
  if (step_pending) return;
  step_pending = true;
  loop.post(guarded([this] { run_step(); }));
}

void EngineLoop::Impl::run_step() {
  const TimeNs start = loop.now();
  const sched::StepPlan& plan = scheduler.schedule(start);
  if (plan.empty()) {
    step_pending = false;
    return;
  }
  const TimeNs planned = loop.now();
  const sched::StepResult& result = executor.execute(plan, planned);
  if (executor.is_real_time()) return take_result(start, planned, result);
  loop.at(planned + result.duration_ns,
          guarded([this, start, planned, &result] { take_result(start, planned, result); }));
}

void EngineLoop::Impl::take_result(TimeNs start, TimeNs planned, const sched::StepResult& result) {
  const TimeNs end = loop.now();
  step_end = end;
  const auto outputs = scheduler.apply(result);
  deliveries.clear();
  for (const sched::SeqOutput& output : outputs) take_output(output, deliveries.emplace_back());
  const TimeNs detokenized = loop.now();

  record::StepRecord record;
  if (steps != nullptr) {
    record = record_of(scheduler.last_plan());
    record.step_start_time = start - origin;
    record.step_end_time = end - origin;
    record.num_outputs = static_cast<std::uint32_t>(outputs.size());
    record.schedule_ns = planned - start;
    record.forward_ns = result.forward_ns;
    record.sampling_ns = result.sampling_ns;
    record.detokenize_ns = detokenized - end;
  }
  for (const Delivery& delivery : deliveries) deliver(delivery, end);
  if (steps != nullptr) steps->on_step(record);

  step_pending = false;
  if (!scheduler.idle()) wake();
}

/// Everything that an output changes here, before any sink hears of any of them.
void EngineLoop::Impl::take_output(const sched::SeqOutput& output, Delivery& delivery) {
  delivery.seq = output.seq;
  delivery.tokens = output.tokens;
  delivery.reason = output.reason;
  const auto found = live.find(output.seq);
  TS_CHECK(found != live.end(), "the scheduler runs only what was submitted here");
  update_timing(found->second, output);
  ++totals.generation_tokens;
  if (found->second.has_text_state) take_text(output.seq, found->second, delivery);
}

void EngineLoop::Impl::update_timing(Live& entry, const sched::SeqOutput& output) {
  EngineTiming& timing = entry.timing;
  const sched::SeqCounters& counters = output.counters;
  if (timing.prefill_end == kUnknownTime) {
    timing.prefill_end = step_end;
    timing.scheduled_prefill = counters.first_scheduled;
    timing.cached_tokens = static_cast<std::int32_t>(counters.cached_tokens);
    totals.prompt_tokens += counters.prompt_tokens;
  }
  timing.output_tokens = static_cast<std::int32_t>(counters.output_tokens);
  timing.chunks = static_cast<std::int32_t>(counters.chunks);
  timing.preemptions = static_cast<std::int32_t>(counters.preemptions);
}

/// Text of the new tokens. A stop string ends the sequence, also where the same token reached a length limit.
void EngineLoop::Impl::take_text(SeqId seq, Live& entry, Delivery& delivery) {
  for (const TokenId token : delivery.tokens) {
    OutputProcessor::Piece piece = processor->push(seq, token);
    delivery.text += piece.text;
    if (!piece.stopped) continue;
    delivery.stop_reason = std::move(piece.stop_reason);
    delivery.reason = FinishReason::stop;
    scheduler.finish(seq);
    return forget_text(seq, entry);
  }
  if (delivery.reason == FinishReason::none) return;
  delivery.text += processor->finish(seq);
  entry.has_text_state = false;
}

void EngineLoop::Impl::forget_text(SeqId seq, Live& entry) {
  if (!entry.has_text_state) return;
  const std::string unwanted = processor->finish(seq);
  entry.has_text_state = false;
}

/// A sink may submit and cancel, so a sequence may be gone when its turn comes.
void EngineLoop::Impl::deliver(const Delivery& delivery, TimeNs at) {
  const auto found = live.find(delivery.seq);
  if (found == live.end()) return;
  Live entry = found->second;  // a copy: the sink may cancel its own sequence
  EngineOutput output{.seq = delivery.seq,
                      .at = at,
                      .tokens = delivery.tokens,
                      .text = delivery.text,
                      .finished = delivery.reason != FinishReason::none,
                      .reason = delivery.reason,
                      .stop_reason = delivery.stop_reason,
                      .timing = &entry.timing};
  if (output.finished) {
    live.erase(found);
    entry.timing.finished = at;
    count_finish(delivery.reason);
  }
  entry.sink->on_output(output);
}

void EngineLoop::Impl::count_finish(FinishReason reason) {
  if (reason == FinishReason::stop) ++totals.requests_finished_stop;
  if (reason == FinishReason::length) ++totals.requests_finished_length;
  if (reason == FinishReason::abort) ++totals.requests_finished_abort;
}

record::StepRecord EngineLoop::Impl::record_of(const sched::StepPlan& plan) const {
  return {.step_id = plan.step_id,
          .num_prefill_tokens = plan.num_prefill_tokens,
          .num_decode_sequences = plan.num_decode_sequences,
          .num_batched_tokens = plan.num_batched_tokens,
          .chunked = plan.chunked,
          .waiting_queue_len = plan.waiting_queue_len,
          .running_queue_len = plan.running_queue_len,
          .prefilling_queue_len = plan.prefilling_queue_len,
          .blocks_active = plan.blocks_active,
          .blocks_cached_idle = plan.blocks_cached_idle,
          .blocks_free = plan.blocks_free,
          .wasted_slots = plan.wasted_slots,
          .allocated_slots = plan.allocated_slots,
          .hit_tokens = plan.hit_tokens,
          .query_tokens = plan.query_tokens,
          .evictions = plan.evictions,
          .preemptions = plan.preemptions,
          .kv_blocked_requests = plan.kv_blocked_requests};
}

}  // namespace tokenstone::runtime
