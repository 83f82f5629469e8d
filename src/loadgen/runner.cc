#include "loadgen/runner.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "base/check.h"
#include "loadgen/token_counter.h"
#include "platform/environment.h"
#include "platform/real_loop.h"

namespace tokenstone::loadgen {
namespace {

constexpr TimeNs kFlushInterval = 500 * kMillisecond;
/// The measured phase starts this much after the set-up, so that the first instants are not late.
constexpr TimeNs kStartLead = 2 * kMillisecond;

TimeNs relative(TimeNs absolute, TimeNs origin) { return absolute == kUnknownTime ? kUnknownTime : absolute - origin; }

}  // namespace

class Runner::Impl {
 public:
  Impl(Loop& loop, runtime::Target& target, RunSink* sink, RunnerOptions options)
      : loop_(loop), target_(target), sink_(sink), options_(std::move(options)), virtual_(target.info().virtual_time) {
    if (options_.count_tokens && !virtual_) counter_ = std::make_unique<TokenCounter>(loop_, options_.count_tokens);
  }

  RunnerOutcome run(const std::function<void(TimeNs)>& at_start) {
    prepare_schedule();
    run_warmup();
    if (!stop_now_) measure(at_start);
    finish_unsent();
    return std::move(outcome_);
  }

  void interrupt(std::string reason) {
    const bool second = outcome_.interrupted;
    outcome_.interrupted = true;
    if (!second) outcome_.interruption = std::move(reason);
    if (pacer_) pacer_->stop();
    stop_warmup_ = true;
    if (second) stop_at_once();
    check_end();
  }

  const ProgressCounters& progress() const { return progress_; }

 private:
  // ---- callbacks of the loop, which may outlive the run
  // ---------------------------------------------------------------------

  template <class F>
  std::move_only_function<void()> guarded(F fn) {
    return [alive = std::weak_ptr<bool>(alive_), fn = std::move(fn)]() mutable {
      if (!alive.expired()) fn();
    };
  }
  template <class F>
  TimerId at(TimeNs t, F fn) {
    return loop_.at(t, guarded(std::move(fn)));
  }
  template <class F>
  void post(F fn) {
    loop_.post(guarded(std::move(fn)));
  }

  /// One request on its way: observes the target, fills the record.
  struct Slot final : runtime::RequestSink {
    Impl* owner = nullptr;
    const record::RequestSpec* spec = nullptr;
    record::RequestRecord record;  // absolute times until it is finished
    Ticket ticket;
    bool warmup = false;
    bool waited_for_slot = false;

    void on_sent(TimeNs t) override { record.sent = t; }
    void on_first_byte(TimeNs t) override { record.first_byte = t; }
    void on_tokens(const record::TokenEvent& event, std::string_view text) override {
      if (record.events.empty()) record.first_token = event.arrived;
      record.last_token = event.arrived;
      record.events.push_back(event);
      record.text_bytes += text.size();
      if (record.text.size() < owner->options_.text_cap) record.text.append(text);
      owner->progress_.output_tokens.fetch_add(event.tokens > 0 ? static_cast<std::uint64_t>(event.tokens) : 1,
                                               std::memory_order_relaxed);
    }
    void on_end(const runtime::Outcome& outcome) override { owner->on_end(*this, outcome); }
  };

  // ---- schedule
  // -------------------------------------------------------------------------------------------------------------

  void prepare_schedule() {
    progress_.planned = options_.planned;
    for (std::uint64_t i = 0; i < options_.planned; ++i)
      specs_.push_back(options_.source(static_cast<std::uint32_t>(i)));
    std::vector<record::RequestSpec> warm;
    for (std::uint32_t i = 0; i < options_.num_warmups; ++i) warm.push_back(options_.warmup_source(i));
    warm_specs_.assign(std::make_move_iterator(warm.begin()), std::make_move_iterator(warm.end()));
    for (const auto& spec : specs_) target_.prepare(std::span(&spec, 1));
    for (const auto& spec : warm_specs_) target_.prepare(std::span(&spec, 1));
  }

  /// In a closed loop by duration requests are made when their slot is free.
  const record::RequestSpec& spec_at(std::uint32_t index) {
    while (specs_.size() <= index) {
      specs_.push_back(options_.source(static_cast<std::uint32_t>(specs_.size())));
      target_.prepare(std::span(&specs_.back(), 1));
    }
    return specs_[index];
  }

  Slot& take_slot(const record::RequestSpec& spec, bool warmup) {
    slots_.emplace_back();
    Slot& slot = slots_.back();
    slot.owner = this;
    slot.spec = &spec;
    slot.warmup = warmup;
    slot.record = planned_record(spec);
    return slot;
  }

  static record::RequestRecord planned_record(const record::RequestSpec& spec) {
    record::RequestRecord r;
    r.index = spec.index;
    r.request_id = spec.request_id;
    r.class_name = spec.class_name;
    r.session = spec.session;
    r.intended = spec.intended;
    r.prompt_len = spec.prompt_len;
    r.planned_prompt_len = spec.prompt_len;
    r.planned_output_len = spec.output_len;
    r.prompt_len_nominal = spec.prompt_len_nominal;
    return r;
  }

  // ---- warm-up
  // --------------------------------------------------------------------------------------------------------------

  void run_warmup() {
    if (warm_specs_.empty() || stop_warmup_) return;
    progress_.phase = ProgressCounters::warmup;
    const TimeNs started = loop_.now();
    post([this] { send_warmups(); });
    loop_.run();
    outcome_.phases.emplace_back("warm-up", loop_.now() - started);
  }

  void send_warmups() {
    if (warmup_done_) return;
    while (!stop_warmup_ && next_warmup_ < warm_specs_.size() && warm_in_flight_ < options_.warmup_concurrency) {
      Slot& slot = take_slot(warm_specs_[next_warmup_++], true);
      ++warm_in_flight_;
      slot.ticket = target_.submit(*slot.spec, slot);
    }
    warmup_done_ = warm_in_flight_ == 0;
    if (warmup_done_) loop_.stop();
  }

  void on_warmup_end(const runtime::Outcome& outcome) {
    --warm_in_flight_;
    if (outcome.error_class != record::ErrorClass::none && ++outcome_.warmups_failed == 1)
      outcome_.warmup_error = outcome.error;
    post([this] { send_warmups(); });
  }

  // ---- measurement
  // ----------------------------------------------------------------------------------------------------------

  void measure(const std::function<void(TimeNs)>& at_start) {
    slots_.clear();
    progress_.output_tokens = 0;
    pacer_.emplace(options_.pacer);
    if (outcome_.interrupted) pacer_->stop();
    t0_ = loop_.now() + (virtual_ ? 0 : kStartLead);
    outcome_.start = t0_;
    progress_.measure_start = t0_;
    progress_.phase = ProgressCounters::measure;
    if (at_start) at_start(t0_);
    const double cpu_before = platform::thread_cpu_seconds();
    const TimeNs wall_before = loop_.now();
    if (auto* real = dynamic_cast<platform::RealLoop*>(&loop_)) real->reset_health();
    at(t0_, [this] { poll(); });
    if (options_.pacer.stop_at != kNever) {
      at(t0_ + options_.pacer.stop_at, [this] { begin_drain(); });
    }
    if (!virtual_) at(t0_ + kFlushInterval, [this] { flush_regularly(); });
    loop_.run();
    flush();
    finish_audit(cpu_before, wall_before);
    progress_.phase = ProgressCounters::done;
  }

  TimeNs elapsed() const { return loop_.now() - t0_; }

  void poll() {
    const TimeNs now = elapsed();
    due_.clear();
    pacer_->poll(now, due_);
    for (const Pacer::Due& due : due_) send(due);
    arm_timer();
    progress_.in_flight.store(pacer_->in_flight(), std::memory_order_relaxed);
    check_end();
  }

  void arm_timer() {
    const TimeNs next = pacer_->next_deadline();
    if (next == armed_) return;
    if (armed_ != kNever) loop_.cancel(timer_);
    armed_ = next;
    if (next == kNever) return;
    timer_ = at(t0_ + next, [this] {
      armed_ = kNever;
      poll();
    });
  }

  void send(const Pacer::Due& due) {
    Slot& slot = take_slot(spec_at(due.index), false);
    slot.record.intended = t0_ + due.intended;
    slot.waited_for_slot = due.waited_for_slot;
    if (due.waited_for_slot) ++outcome_.audit.waited_for_slot;
    note_in_flight(+1);
    progress_.sent.fetch_add(1, std::memory_order_relaxed);
    slot.ticket = target_.submit(*slot.spec, slot);
  }

  void note_in_flight(int change) {
    const TimeNs now = loop_.now();
    in_flight_area_ += static_cast<double>(now - last_change_) * in_flight_now_;
    last_change_ = now;
    in_flight_now_ += change;
    outcome_.audit.max_in_flight = std::max(outcome_.audit.max_in_flight, static_cast<std::uint32_t>(in_flight_now_));
  }

  void on_end(Slot& slot, const runtime::Outcome& outcome) {
    if (slot.warmup) return on_warmup_end(outcome);
    take_outcome(slot, outcome);
    note_in_flight(-1);
    last_end_ = loop_.now();
    pacer_->on_finished(elapsed());
    watch_server(slot.record);
    const bool needs_count = slot.record.succeeded() && slot.record.usage_output_len < 0 && counter_ != nullptr;
    ++open_records_;
    if (needs_count) {
      counter_->count(slot.record.text, [this, &slot](std::int64_t tokens) { settle(slot, tokens); });
    } else {
      settle(slot, -1);
    }
    post([this] { poll(); });
  }

  void take_outcome(Slot& slot, const runtime::Outcome& outcome) {
    record::RequestRecord& r = slot.record;
    r.finished = outcome.finished;
    r.error_class = outcome.error_class;
    r.error = outcome.error;
    r.http_status = outcome.http_status;
    r.finish_reason = outcome.finish_reason;
    r.connect_ns = outcome.connect_ns;
    r.missing_done = outcome.error_class == record::ErrorClass::none && !outcome.done_seen;
    r.cached_tokens = outcome.cached_tokens;
    r.usage_output_len = outcome.usage_completion_tokens;
    if (outcome.usage_prompt_tokens >= 0) {
      r.prompt_len = outcome.usage_prompt_tokens;
      r.prompt_len_nominal = false;
    }
    r.event_count = static_cast<std::int64_t>(r.events.size());
    r.arrival_time = outcome.arrival_time;
    r.scheduled_prefill_time = outcome.scheduled_prefill_time;
    r.prefill_end = outcome.prefill_end;
    r.chunks = outcome.chunks;
    r.preemptions = outcome.preemptions;
  }

  /// A server that refuses one connection after another is gone: the rest stays unsent instead of failing one by one.
  void watch_server(const record::RequestRecord& r) {
    using record::ErrorClass;
    refused_in_a_row_ = r.error_class == ErrorClass::refused ? refused_in_a_row_ + 1 : 0;
    if (refused_in_a_row_ < options_.refused_in_a_row) return;
    outcome_.server_died = true;
    pacer_->stop();
  }

  /// The record is complete: times become relative, the output length is decided, the sink gets it.
  void settle(Slot& slot, std::int64_t counted) {
    record::RequestRecord& r = slot.record;
    if (!slot.waited_for_slot && r.was_sent() && !options_.pacer.closed_loop)
      outcome_.audit.send_lag.push_back(r.sent - r.intended);
    if (slot.waited_for_slot && r.was_sent())
      outcome_.audit.slot_wait_max = std::max(outcome_.audit.slot_wait_max, r.sent - r.intended);
    make_relative(r);
    decide_output_length(r, counted);
    const bool good = r.succeeded();
    if (good && !options_.keep_text) {
      r.text.clear();
      r.text.shrink_to_fit();
    }
    (good ? progress_.completed : progress_.failed).fetch_add(1, std::memory_order_relaxed);
    if (sink_ != nullptr) note_write(sink_->on_request(r));
    --open_records_;
    finished_.push_back(std::move(r));
    check_end();
  }

  void make_relative(record::RequestRecord& r) const {
    for (TimeNs* t : {&r.intended, &r.sent, &r.first_byte, &r.first_token, &r.last_token, &r.finished, &r.arrival_time,
                      &r.scheduled_prefill_time, &r.prefill_end})
      *t = relative(*t, t0_);
    for (record::TokenEvent& event : r.events) {
      event.arrived = relative(event.arrived, t0_);
      event.parsed = relative(event.parsed, t0_);
    }
  }

  void decide_output_length(record::RequestRecord& r, std::int64_t counted) const {
    if (r.usage_output_len >= 0) {
      r.output_len = r.usage_output_len;
      r.output_len_source = target_.info().kind == "http" ? record::LengthSource::usage : record::LengthSource::engine;
    } else if (counted >= 0) {
      r.output_len = counted;
      r.output_len_source = record::LengthSource::tokenizer;
    } else {
      r.output_len = r.event_count;
      r.output_len_source = record::LengthSource::events;
    }
  }

  void note_write(Status written) {
    if (written || write_failed_) return;
    write_failed_ = true;
    interrupt(written.error().message);
  }

  // ---- ending
  // ---------------------------------------------------------------------------------------------------------------

  void begin_drain() {
    if (progress_.phase.load() == ProgressCounters::measure) progress_.phase = ProgressCounters::drain;
    poll();
    if (options_.drain_limit == kNever) return;
    at(loop_.now() + options_.drain_limit, [this] { cancel_open(record::ErrorClass::cancelled); });
  }

  void cancel_open(record::ErrorClass reason) {
    std::vector<Ticket> open;
    for (const Slot& slot : slots_)
      if (slot.record.finished == kUnknownTime && slot.ticket.value != 0) open.push_back(slot.ticket);
    for (const Ticket ticket : open) target_.cancel(ticket, reason);
  }

  void stop_at_once() {
    stop_now_ = true;
    cancel_open(record::ErrorClass::cancelled);
    loop_.stop();
  }

  void check_end() {
    if (!pacer_ || progress_.phase.load() == ProgressCounters::connect) return;
    if (pacer_->in_flight() == 0 && open_records_ == 0 && pacer_->exhausted(elapsed())) loop_.stop();
  }

  void flush() {
    if (sink_ != nullptr && !write_failed_) note_write(sink_->flush());
  }

  void flush_regularly() {
    flush();
    at(loop_.now() + kFlushInterval, [this] { flush_regularly(); });
  }

  void finish_audit(double cpu_before, TimeNs wall_before) {
    note_in_flight(0);
    const TimeNs end = last_end_ == kUnknownTime ? loop_.now() : last_end_;
    outcome_.end = end - t0_;
    const TimeNs measured = std::max<TimeNs>(1, end - t0_);
    outcome_.audit.mean_in_flight = in_flight_area_ / static_cast<double>(measured);
    const double cpu = platform::thread_cpu_seconds() - cpu_before;
    outcome_.audit.cpu_share = virtual_ ? -1 : cpu / to_seconds(std::max<TimeNs>(1, loop_.now() - wall_before));
    if (auto* real = dynamic_cast<platform::RealLoop*>(&loop_))
      outcome_.audit.loop_stall_max = real->health().longest_round_ns;
    outcome_.phases.emplace_back("measure", std::min(outcome_.end, options_.pacer.stop_at));
    if (options_.pacer.stop_at != kNever && outcome_.end > options_.pacer.stop_at)
      outcome_.phases.emplace_back("drain", outcome_.end - options_.pacer.stop_at);
  }

  /// Records of what was never sent, and all in planned order.
  void finish_unsent() {
    std::vector<bool> seen(specs_.size(), false);
    for (const record::RequestRecord& r : finished_) seen[r.index] = true;
    for (Slot& slot : slots_) {
      if (slot.warmup || slot.record.index >= seen.size() || seen[slot.record.index]) continue;
      // Cut off by a second interrupt: what had been received is kept.
      make_relative(slot.record);
      slot.record.error_class = record::ErrorClass::cancelled;
      slot.record.error = "the run was stopped";
      seen[slot.record.index] = true;
      finished_.push_back(std::move(slot.record));
    }
    for (const record::RequestSpec& spec : specs_)
      if (!seen[spec.index]) finished_.push_back(planned_record(spec));
    std::sort(finished_.begin(), finished_.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    outcome_.requests = std::move(finished_);
  }

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Loop& loop_;
  runtime::Target& target_;
  RunSink* sink_;
  RunnerOptions options_;
  const bool virtual_;
  std::unique_ptr<TokenCounter> counter_;
  ProgressCounters progress_;
  RunnerOutcome outcome_;

  std::deque<record::RequestSpec> specs_, warm_specs_;
  std::deque<Slot> slots_;
  std::vector<record::RequestRecord> finished_;
  std::vector<Pacer::Due> due_;
  std::optional<Pacer> pacer_;
  std::size_t next_warmup_ = 0;
  std::uint32_t warm_in_flight_ = 0;
  std::uint32_t refused_in_a_row_ = 0;
  std::uint64_t open_records_ = 0;
  bool warmup_done_ = false, stop_warmup_ = false, stop_now_ = false, write_failed_ = false;
  TimeNs t0_ = 0, armed_ = kNever, last_end_ = kUnknownTime, last_change_ = 0;
  TimerId timer_;
  double in_flight_area_ = 0;
  int in_flight_now_ = 0;
};

Runner::Runner(Loop& loop, runtime::Target& target, RunSink* sink, RunnerOptions options)
    : impl_(std::make_unique<Impl>(loop, target, sink, std::move(options))) {}
Runner::~Runner() = default;
RunnerOutcome Runner::run(const std::function<void(TimeNs)>& at_start) { return impl_->run(at_start); }
void Runner::interrupt(std::string reason) { impl_->interrupt(std::move(reason)); }
const ProgressCounters& Runner::progress() const { return impl_->progress(); }

}  // namespace tokenstone::loadgen
