#include "record/metrics.h"

#include <cmath>

#include "base/check.h"
#include "record/in_flight.h"
#include "record/vllm_peaks.h"

namespace tokenstone::record {
namespace {

std::optional<double> span_ms(TimeNs from, TimeNs to) {
  if (from == kUnknownTime || to == kUnknownTime) return std::nullopt;
  return to_millis(to - from);
}

std::optional<double> tpot_ms(const RequestRecord& r) {
  if (r.output_len <= 1) return std::nullopt;
  const auto decode = span_ms(r.first_token, r.last_token);
  if (!decode || r.sent == kUnknownTime) return std::nullopt;
  return *decode / static_cast<double>(r.output_len - 1);
}

/// The request's own ITL quantile.
std::optional<double> itl_quantile_ms(const RequestRecord& r, double q) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < r.events.size(); ++i)
    gaps.push_back(to_millis(r.events[i].arrived - r.events[i - 1].arrived));
  if (gaps.empty()) return std::nullopt;
  std::sort(gaps.begin(), gaps.end());
  return stats::quantile_of_sorted(gaps, q);
}

bool in_window(const RunResult& run, TimeNs t) {
  return t != kUnknownTime && t >= run.window_start && (run.plan.duration ? t < run.window_end : t <= run.window_end);
}

/// The instant at which a request counts as ended: its last token by duration, its end by count.
bool completed_in_window(const RunResult& run, const RequestRecord& r) {
  if (!run.plan.duration) return true;
  return in_window(run, r.last_token == kUnknownTime ? r.finished : r.last_token);
}

/// Output tokens whose event fell into the window. Where an event's count is not known, or the events' counts do not
/// add up to the request's, every event stands for an equal share.
double output_tokens_in_window(const RunResult& run, const RequestRecord& r) {
  if (r.output_len < 0) return 0;
  const auto all = static_cast<double>(r.output_len);
  if (!run.plan.duration) return all;
  if (r.events.empty()) return completed_in_window(run, r) ? all : 0;
  std::int64_t known = 0, inside = 0, inside_events = 0;
  bool unknown = false;
  for (const TokenEvent& event : r.events) {
    const bool is_inside = in_window(run, event.arrived);
    inside_events += is_inside;
    unknown |= event.tokens < 0;
    known += event.tokens;
    if (is_inside) inside += event.tokens;
  }
  if (!unknown && known == r.output_len) return static_cast<double>(inside);
  return all * static_cast<double>(inside_events) / static_cast<double>(r.events.size());
}

/// The samples while they are gathered.
struct Samples {
  stats::Sample ttft, ttft_intended, tpot, itl, itl_per_token, e2el, e2el_intended, output_tokens, prompt_tokens, queue,
      connect;
  std::uint64_t gaps = 0, zero_gaps = 0, counted_events = 0, multi_events = 0;

  static void add(stats::Sample& sample, std::optional<double> value) {
    if (value) sample.add(*value);
  }

  void add_events(const RequestRecord& r) {
    for (std::size_t i = 0; i < r.events.size(); ++i) {
      const TokenEvent& event = r.events[i];
      if (event.tokens >= 0) ++counted_events;
      if (event.tokens > 1) ++multi_events;
      if (i == 0) continue;
      const double gap = to_millis(event.arrived - r.events[i - 1].arrived);
      itl.add(gap);
      ++gaps;
      if (gap == 0) ++zero_gaps;
      for (std::int32_t k = 0; k < event.tokens; ++k) itl_per_token.add(gap / event.tokens);
    }
  }

  void add_completed(const RequestRecord& r) {
    add(ttft, span_ms(r.sent, r.first_token));
    add(ttft_intended, span_ms(r.intended, r.first_token));
    add(tpot, tpot_ms(r));
    add(e2el, span_ms(r.sent, r.last_token));
    add(e2el_intended, span_ms(r.intended, r.last_token));
    if (r.output_len >= 0) output_tokens.add(static_cast<double>(r.output_len));
    if (r.prompt_len >= 0) prompt_tokens.add(static_cast<double>(r.prompt_len));
    add_events(r);
  }

  void store(MetricSet& set) {
    if (gaps > 0) set.set("zero_gap_share", 100.0 * static_cast<double>(zero_gaps) / static_cast<double>(gaps));
    if (counted_events > 0)
      set.set("multi_token_event_share",
              100.0 * static_cast<double>(multi_events) / static_cast<double>(counted_events));
    set.set("ttft", std::move(ttft));
    set.set("ttft_intended", std::move(ttft_intended));
    set.set("tpot", std::move(tpot));
    set.set("itl", std::move(itl));
    if (multi_events > 0) set.set("itl_per_token", std::move(itl_per_token));
    set.set("e2el", std::move(e2el));
    set.set("e2el_intended", std::move(e2el_intended));
    set.set("output_tokens", std::move(output_tokens));
    set.set("prompt_tokens", std::move(prompt_tokens));
    set.set("queue", std::move(queue));
    set.set("connect", std::move(connect));
  }
};

void count_error(MetricSet& set, const RequestRecord& r) {
  const int status = r.error_class == ErrorClass::http_status ? r.http_status : 0;
  auto found = std::find_if(set.errors.begin(), set.errors.end(), [&](const ErrorCount& e) {
    return e.error_class == r.error_class && e.http_status == status;
  });
  if (found == set.errors.end()) {
    set.errors.push_back({r.error_class, status, 0, r.finished, r.finished, r.error});
    found = set.errors.end() - 1;
  }
  ++found->count;
  if (r.finished == kUnknownTime) return;
  if (found->first == kUnknownTime || r.finished < found->first) found->first = r.finished;
  if (found->last == kUnknownTime || r.finished > found->last) found->last = r.finished;
}

/// Sums that become rates.
struct Sums {
  std::uint64_t completed = 0, in_window = 0, good_in_window = 0, failed = 0, unsent = 0, no_token = 0;
  double input = 0, output = 0, window_input = 0, window_output = 0, good_output = 0;

  void add_completed(const RunResult& run, const RequestRecord& r, MetricSet& set) {
    ++completed;
    ++set.length_sources[r.output_len_source];
    if (r.first_token == kUnknownTime) ++no_token;
    const bool inside = completed_in_window(run, r);
    in_window += inside;
    const double prompt = static_cast<double>(std::max<std::int64_t>(r.prompt_len, 0));
    const double window_tokens = output_tokens_in_window(run, r);
    input += prompt;
    output += static_cast<double>(std::max<std::int64_t>(r.output_len, 0));
    if (!run.plan.duration || in_window_at(run, r.first_token)) window_input += prompt;
    window_output += window_tokens;
    if (run.plan.goodput.empty() || !within_limits(r, run.plan.goodput)) return;
    ++set.good;
    good_in_window += inside;
    good_output += window_tokens;
  }

  static bool in_window_at(const RunResult& run, TimeNs t) { return record::in_window(run, t); }

  void store(const RunResult& run, MetricSet& set) const {
    set.set("completed", static_cast<double>(completed));
    set.set("failed", static_cast<double>(failed));
    set.set("unsent", static_cast<double>(unsent));
    set.set("completed_in_window", static_cast<double>(in_window));
    set.set("completed_in_drain", static_cast<double>(completed - in_window));
    set.set("no_token", static_cast<double>(no_token));
    set.set("total_input_tokens", input);
    set.set("total_output_tokens", output);
    const std::uint64_t all = completed + failed + unsent;
    if (!run.plan.goodput.empty() && all > 0)
      set.set("slo_attainment", 100.0 * static_cast<double>(set.good) / static_cast<double>(all));
    const double seconds = to_seconds(run.window_end - run.window_start);
    if (seconds <= 0) return;
    set.set("duration", seconds);
    set.set("request_throughput", static_cast<double>(in_window) / seconds);
    set.set("input_throughput", window_input / seconds);
    set.set("output_throughput", window_output / seconds);
    set.set("total_token_throughput", (window_input + window_output) / seconds);
    if (run.plan.goodput.empty()) return;
    set.set("request_goodput", static_cast<double>(good_in_window) / seconds);
    set.set("output_token_goodput", good_output / seconds);
  }
};

void add_engine(const RunResult& run, MetricSet& set) {
  double steps = 0, waiting = 0, waiting_max = 0, running = 0, length = 0, preemptions = 0, hits = 0, queries = 0;
  double free_min = 1;
  bool has_blocks = false;
  for (const StepRecord& s : run.steps) {
    ++steps;
    waiting += s.waiting_queue_len;
    waiting_max = std::max<double>(waiting_max, s.waiting_queue_len);
    running += s.running_queue_len;
    length += to_millis(s.step_end_time - s.step_start_time);
    preemptions += s.preemptions;
    hits += static_cast<double>(s.hit_tokens);
    queries += static_cast<double>(s.query_tokens);
    const double idle = static_cast<double>(s.blocks_free) + s.blocks_cached_idle, all = idle + s.blocks_active;
    if (all <= 0) continue;
    has_blocks = true;
    free_min = std::min(free_min, idle / all);
  }
  if (steps == 0) return;
  set.set("engine_queue_mean", waiting / steps);
  set.set("engine_queue_max", waiting_max);
  set.set("engine_batch_mean", running / steps);
  if (has_blocks) set.set("engine_kv_free_min", 100 * free_min);
  if (queries > 0) set.set("engine_prefix_hits", 100 * hits / queries);
  set.set("engine_preemptions", preemptions);
  set.set("engine_step_mean", length / steps);
}

void add_peaks(const RunResult& run, MetricSet& set) {
  const VllmPeaks peaks = vllm_peaks(run.requests);
  if (peaks.any) {
    set.set("max_output_tokens_per_s", peaks.max_output_tokens_per_s);
    set.set("max_concurrent_requests", static_cast<double>(peaks.max_concurrent_requests));
  }
  if (const auto peak = peak_tokens_per_second(run)) set.set("peak_output_tokens_per_s", *peak);
  const InFlight flight = in_flight(run);
  if (!flight.any) return;
  set.set("peak_in_flight", static_cast<double>(flight.peak));
  if (flight.mean) set.set("mean_in_flight", *flight.mean);
}

stats::Sample send_lag_ms(const ClientAudit& audit) {
  stats::Sample sample;
  sample.reserve(audit.send_lag.size());
  for (const TimeNs lag : audit.send_lag) sample.add(to_millis(lag));
  return sample;
}

}  // namespace

const stats::Sample& MetricSet::sample(std::string_view key) const {
  static const stats::Sample kEmpty;
  const auto found = samples_.find(key);
  return found == samples_.end() ? kEmpty : found->second;
}

std::optional<double> MetricSet::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

void MetricSet::set(std::string_view key, double value) {
  const MetricDescriptor* metric = find_metric(key);
  TS_CHECK(metric != nullptr && metric->kind == MetricKind::scalar, "a number needs its row in the table");
  TS_CHECK(std::isfinite(value), "what was not measured is absent");
  values_.insert_or_assign(std::string(key), value);
}

void MetricSet::set(std::string_view key, stats::Sample sample) {
  const MetricDescriptor* metric = find_metric(key);
  TS_CHECK(metric != nullptr && metric->kind == MetricKind::distribution, "a sample needs its row in the table");
  samples_.insert_or_assign(std::string(key), std::move(sample));
}

MetricSet compute_metrics(const RunResult& run) {
  MetricSet set;
  Samples samples;
  Sums sums;
  set.planned = run.requests.size();
  for (const RequestRecord& r : run.requests) {
    set.sent += r.was_sent();
    if (r.succeeded()) {
      samples.add_completed(r);
      sums.add_completed(run, r, set);
    } else if (r.error_class != ErrorClass::none) {
      ++sums.failed;
      count_error(set, r);
    } else {
      ++sums.unsent;
    }
    Samples::add(samples.queue, span_ms(r.intended, r.sent));
    if (r.connect_ns != kUnknownTime) samples.connect.add(to_millis(r.connect_ns));
  }
  std::stable_sort(set.errors.begin(), set.errors.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  samples.store(set);
  sums.store(run, set);
  set.set("send_lag", send_lag_ms(run.audit));
  if (const auto offered = offered_rate(run)) set.set("offered_rate", *offered);
  add_peaks(run, set);
  add_engine(run, set);
  return set;
}

std::optional<double> request_value(const RequestRecord& r, const Limit& limit) {
  if (!r.succeeded()) return std::nullopt;
  if (limit.metric == "ttft") return span_ms(r.sent, r.first_token);
  if (limit.metric == "tpot") return tpot_ms(r);
  if (limit.metric == "e2el") return span_ms(r.sent, r.last_token);
  if (limit.metric == "itl") return itl_quantile_ms(r, limit.quantile.value_or(0.99));
  return std::nullopt;
}

bool within_limits(const RequestRecord& request, const std::vector<Limit>& limits) {
  TS_CHECK(request.succeeded(), "a failed request is never good");
  if (request.first_token == kUnknownTime) return false;  // nothing was delivered
  return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) {
    const auto value = request_value(request, limit);
    return !value || *value <= limit.limit_ms;
  });
}

std::optional<double> offered_rate(const RunResult& run) {
  const RunPlan& plan = run.plan;
  if (!plan.stages.empty()) {
    double requests = 0, seconds = 0;
    for (const auto& [rate, length] : plan.stages) {
      requests += rate * to_seconds(length);
      seconds += to_seconds(length);
    }
    if (seconds > 0 && std::isfinite(requests)) return requests / seconds;
    return std::nullopt;
  }
  if (std::isinf(plan.request_rate)) return std::nullopt;
  if (plan.request_rate > 0) return plan.request_rate;
  TimeNs first = kNever, last = kUnknownTime;
  double count = 0;
  for (const RequestRecord& r : run.requests) {
    if (r.intended == kUnknownTime) continue;
    ++count;
    first = std::min(first, r.intended);
    last = std::max(last, r.intended);
  }
  if (count < 2 || last <= first) return std::nullopt;
  return (count - 1) / to_seconds(last - first);
}

}  // namespace tokenstone::record
