#include "judge/findings.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "judge/limits.h"

namespace tokenstone::judge {
namespace {

using record::LengthSource;
using record::MetricSet;
using record::RequestRecord;
using record::RunResult;

struct Context {
  const RunResult& run;
  const MetricSet& metrics;
  const std::vector<ObjectiveResult>& objectives;
};
using Maybe = std::optional<Finding>;

std::string count(std::uint64_t n) { return format_count(static_cast<std::int64_t>(n)); }

template <class Predicate>
std::uint64_t count_completed(const RunResult& run, Predicate&& wanted) {
  return static_cast<std::uint64_t>(std::count_if(run.requests.begin(), run.requests.end(),
                                                  [&](const RequestRecord& r) { return r.succeeded() && wanted(r); }));
}

std::string error_name(const record::ErrorCount& e) {
  std::string name(to_string(e.error_class));
  if (e.http_status > 0) name += fmt::format(" {}", e.http_status);
  return name;
}

Maybe failures(const Context& c) {
  if (c.metrics.errors.empty()) return std::nullopt;
  std::vector<std::string> classes;
  for (const auto& e : c.metrics.errors) classes.push_back(fmt::format("{} {}", count(e.count), error_name(e)));
  const record::ErrorCount& most = c.metrics.errors.front();
  const std::string sample = most.sample.empty() ? "" : fmt::format("; first: {}", most.sample);
  return Finding{
      "V01",
      fmt::format("{} requests failed; they are in no latency and no token figure", count(c.metrics.count("failed"))),
      join(classes, ", ") + sample, "--full lists every class with one sample"};
}

/// Time in which the middle 80 % of the instants lie: the ends of a run (first and last answers) do not weigh.
double middle_span(std::vector<double> instants) {
  std::sort(instants.begin(), instants.end());
  return stats::quantile_of_sorted(instants, 0.9) - stats::quantile_of_sorted(instants, 0.1);
}

// A server that keeps up completes at the pace of the plan, only later; one that does not stretches the pace.
// Completions over the window would blame short runs for their last answers' length.
Maybe not_delivered(const Context& c) {
  const auto offered = c.metrics.value("offered_rate");
  std::vector<double> intended, ended;
  for (const RequestRecord& r : c.run.requests) {
    if (!r.succeeded() || r.intended == kUnknownTime) continue;
    intended.push_back(to_seconds(r.intended));
    ended.push_back(to_seconds(r.finished));
  }
  constexpr std::size_t kEnough = 50;
  if (!offered || intended.size() < kEnough) return std::nullopt;
  const double planned = middle_span(std::move(intended)), taken = middle_span(std::move(ended));
  if (planned <= 0 || planned >= 0.95 * taken) return std::nullopt;
  return Finding{
      "V02", "the target did not keep up with the offered rate",
      fmt::format("answers came at {:.0f} % of the offered {} req/s", 100 * planned / taken, format_figure(*offered)),
      "lower --request-rate; what is shown is a queue that grows as long as the run lasts"};
}

Maybe held_back(const Context& c) {
  if (c.run.audit.waited_for_slot == 0 || !c.metrics.value("offered_rate")) return std::nullopt;
  const auto p99 = c.metrics.sample("ttft_intended").quantile(0.99);
  return Finding{"V03", fmt::format("--max-concurrency held back {} requests", count(c.run.audit.waited_for_slot)),
                 fmt::format("longest wait {} ms; p99 TTFT from the planned instant {} ms",
                             format_figure(to_millis(c.run.audit.slot_wait_max)), format_figure(p99.value)),
                 "raise --max-concurrency, or judge by the times from the planned instant (--full)"};
}

Maybe short_answers(const Context& c) {
  if (!c.run.plan.ignore_eos) return std::nullopt;
  const auto is_short = [](const RequestRecord& r) {
    return r.output_len >= 0 && r.planned_output_len > 0 && r.output_len < r.planned_output_len;
  };
  const std::uint64_t n = count_completed(c.run, is_short);
  if (n == 0) return std::nullopt;
  double asked = 0, got = 0;
  for (const RequestRecord& r : c.run.requests) {
    if (!r.succeeded() || !is_short(r)) continue;
    asked += static_cast<double>(r.planned_output_len);
    got += static_cast<double>(r.output_len);
  }
  return Finding{"V04", fmt::format("{} answers are shorter than asked, in spite of --ignore-eos", count(n)),
                 fmt::format("on average {} of {} tokens", format_figure(got / static_cast<double>(n)),
                             format_figure(asked / static_cast<double>(n))),
                 "see if the server knows ignore_eos, or has a lower limit on output tokens"};
}

Maybe estimated_lengths(const Context& c) {
  const auto of = [&](LengthSource source) {
    const auto found = c.metrics.length_sources.find(source);
    return found == c.metrics.length_sources.end() ? std::uint64_t{0} : found->second;
  };
  const std::uint64_t tokenizer = of(LengthSource::tokenizer), events = of(LengthSource::events),
                      unknown = of(LengthSource::unknown);
  if (tokenizer + events + unknown == 0) return std::nullopt;
  std::string evidence = fmt::format("{} by our tokenizer, {} by counting events", count(tokenizer), count(events));
  if (unknown > 0) evidence += fmt::format(", {} not known", count(unknown));
  return Finding{
      "V05",
      fmt::format("the server gave no usage for {} answers: their output tokens are estimated",
                  count(tokenizer + events + unknown)),
      evidence,
      tokenizer > 0 ? "see that --tokenizer is the model's own" : "give --tokenizer, or a server that sends usage"};
}

Maybe missing_done(const Context& c) {
  const std::uint64_t n = count_completed(c.run, [](const RequestRecord& r) { return r.missing_done; });
  if (n == 0) return std::nullopt;
  return Finding{"V06", fmt::format("{} streams ended without [DONE]", count(n)),
                 "each had its finish reason, so they count as complete", "look at the server or a proxy between"};
}

Maybe no_warmup(const Context& c) {
  if (c.run.plan.num_warmups > 0 || c.run.plan.virtual_time) return std::nullopt;
  return Finding{"V07", "no warm-up: the first requests may be slow", "--num-warmups 0", "--num-warmups 8"};
}

Maybe send_lag(const Context& c) {
  const stats::Sample& lag = c.metrics.sample("send_lag");
  if (lag.empty()) return std::nullopt;
  const double p99 = lag.quantile(0.99).value;
  const double ttft = c.metrics.sample("ttft").quantile(0.5).value;
  if (p99 <= std::max(1.0, 0.01 * ttft)) return std::nullopt;
  return Finding{"V08", "the generator sent late: it may be the bottleneck",
                 fmt::format("send lag p99 {} ms, longest stall {} ms", format_figure(p99),
                             format_figure(to_millis(c.run.audit.loop_stall_max))),
                 "give the generator its own cores, or lower the rate"};
}

// Server and client count prompt tokens with different tokenizers, or special tokens are added: a few are normal.
Maybe prompt_lengths_differ(const Context& c) {
  double planned = 0, counted = 0;
  std::uint64_t n = 0;
  for (const RequestRecord& r : c.run.requests) {
    if (!r.succeeded() || r.planned_prompt_len <= 0 || r.prompt_len < 0 || r.prompt_len_nominal) continue;
    planned += static_cast<double>(r.planned_prompt_len);
    counted += static_cast<double>(r.prompt_len);
    ++n;
  }
  if (n == 0) return std::nullopt;
  const double mean_planned = planned / static_cast<double>(n), mean_counted = counted / static_cast<double>(n);
  const double difference = std::fabs(mean_counted - mean_planned);
  if (difference <= std::max(0.05 * mean_planned, 8.0) && difference <= 0.5 * mean_planned) return std::nullopt;
  return Finding{
      "V09", "the server counts other prompt tokens than the plan",
      fmt::format("on average {} against {} planned", format_figure(mean_counted), format_figure(mean_planned)),
      "give the model's own --tokenizer, or send token ids"};
}

Maybe nominal_lengths(const Context& c) {
  const auto n = static_cast<std::uint64_t>(std::count_if(c.run.requests.begin(), c.run.requests.end(),
                                                          [](const RequestRecord& r) { return r.prompt_len_nominal; }));
  if (n == 0) return std::nullopt;
  return Finding{"V10", fmt::format("prompt lengths of {} requests are nominal: asked, not counted", count(n)),
                 "no tokenizer, and no usage from the server", "--tokenizer PATH"};
}

Maybe weak_objective(const Context& c) {
  const auto weak =
      std::find_if(c.objectives.begin(), c.objectives.end(), [](const auto& o) { return o.n > 0 && !o.reliable; });
  if (weak == c.objectives.end()) return std::nullopt;
  return Finding{
      "V11", fmt::format("too few samples for the objective {}", weak->limit.text),
      fmt::format("{} samples; {} needs {}", count(weak->n), quantile_name(*weak->limit.quantile), count(weak->needed)),
      "measure more requests"};
}

Maybe bunched_tokens(const Context& c) {
  const double multi = c.metrics.value("multi_token_event_share").value_or(0),
               zero = c.metrics.value("zero_gap_share").value_or(0);
  constexpr double kShare = 5;  // percent
  if (multi < kShare && zero < kShare) return std::nullopt;
  return Finding{"V12", "tokens come in bunches: ITL is the gap between events, not between tokens",
                 fmt::format("{:.0f} % of events carry several tokens, {:.0f} % of gaps are 0", multi, zero),
                 "judge the pace by TPOT"};
}

Maybe empty_answers(const Context& c) {
  const std::uint64_t n = c.metrics.count("no_token");
  if (n == 0) return std::nullopt;
  return Finding{"V13", fmt::format("answers without any token: {}; they have no TTFT", count(n)),
                 fmt::format("of {} completed", count(c.metrics.count("completed"))),
                 "look at the server's answers (--save-detailed)"};
}

}  // namespace

std::vector<Finding> find_all(const RunResult& run, const MetricSet& metrics,
                              const std::vector<ObjectiveResult>& objectives) {
  constexpr Maybe (*kAll[])(const Context&) = {
      failures, not_delivered,         held_back,       short_answers,  estimated_lengths, missing_done, no_warmup,
      send_lag, prompt_lengths_differ, nominal_lengths, weak_objective, bunched_tokens,    empty_answers};
  const Context context{run, metrics, objectives};
  std::vector<Finding> found;
  for (const auto& look : kAll)
    if (Maybe finding = look(context)) found.push_back(*std::move(finding));
  return found;
}

}  // namespace tokenstone::judge
