#include "workload/arrivals.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "workload/random_streams.h"

namespace tokenstone::workload {
namespace {

constexpr double kMostRequests = 20e6;   // a schedule beyond this would not fit the memory of a small machine
constexpr double kLongestSeconds = 1e9;  // thirty years; instants stay far from the end of TimeNs

// Gaps of mean 1.
class UnitGaps {
 public:
  UnitGaps(double burstiness, Rng rng) : burstiness_(burstiness), rng_(rng) {}
  double next() {
    if (std::isinf(burstiness_)) return 1;
    if (burstiness_ == 1) return rng_.exponential();
    return rng_.gamma(burstiness_) / burstiness_;
  }

 private:
  double burstiness_;
  Rng rng_;
};

double effective_burstiness(const ArrivalOptions& options) {
  return options.kind == ArrivalKind::constant ? std::numeric_limits<double>::infinity() : options.burstiness;
}

std::vector<TimeNs> by_count(const ArrivalOptions& options, std::uint64_t count) {
  UnitGaps gaps(effective_burstiness(options), Rng(options.seed, streams::arrivals));
  std::vector<double> at(count);
  double now = 0;
  for (double& instant : at) instant = now += gaps.next();
  // The last instant becomes count / rate. Vanishing gaps (burstiness near zero) can leave nothing to stretch.
  const double factor = now > 0 ? static_cast<double>(count) / now : 1;
  std::vector<TimeNs> times(count);
  for (std::size_t i = 0; i < count; ++i) times[i] = from_seconds(at[i] * factor / options.rate);
  if (count > 0 && now > 0) times.back() = from_seconds(static_cast<double>(count) / options.rate);
  return times;
}

void append_by_duration(std::vector<TimeNs>& times, TimeNs start, TimeNs length, double rate, UnitGaps gaps,
                        std::uint64_t most) {
  double now = 0;
  while (times.size() < most) {
    now += gaps.next() / rate;
    if (now >= to_seconds(length)) return;
    times.push_back(start + from_seconds(now));
  }
}

std::vector<TimeNs> by_duration(const ArrivalOptions& options) {
  std::vector<TimeNs> times;
  append_by_duration(times, 0, *options.duration, options.rate,
                     UnitGaps(effective_burstiness(options), Rng(options.seed, streams::arrivals)),
                     options.count.value_or(UINT64_MAX));
  return times;
}

std::vector<TimeNs> by_stages(const ArrivalOptions& options) {
  std::vector<TimeNs> times;
  TimeNs start = 0;
  for (std::size_t i = 0; i < options.stages.size(); ++i) {
    const Stage& stage = options.stages[i];
    append_by_duration(times, start, stage.length, stage.rate,
                       UnitGaps(options.burstiness, Rng(options.seed, stream_of(streams::arrivals, i))),
                       options.count.value_or(UINT64_MAX));
    start += stage.length;
  }
  const auto in_time = [&](TimeNs at) { return !options.duration || at < *options.duration; };
  times.erase(std::partition_point(times.begin(), times.end(), in_time), times.end());
  return times;
}

std::vector<TimeNs> by_trace(const ArrivalOptions& options) {
  std::vector<TimeNs> times;
  for (const TimeNs recorded : options.trace) {
    const auto at = static_cast<TimeNs>(std::llround(static_cast<double>(recorded) / options.speedup));
    if (options.count && times.size() >= *options.count) break;
    if (options.duration && at >= *options.duration) break;
    times.push_back(at);
  }
  return times;
}

Status validate_rate(double rate, std::string_view flag) {
  if (rate > 0 && !std::isnan(rate)) return {};
  return usage_error(fmt::format("{} must be greater than 0 (or inf: all at once), found {}", flag, rate),
                     std::string(flag));
}

Status validate_size(double requests, double seconds) {
  if (requests > kMostRequests)
    return usage_error(
        fmt::format("the schedule would have {:.3g} requests; at most {:.0f} are planned: lower the rate, "
                    "the duration or --num-prompts",
                    requests, kMostRequests));
  if (seconds > kLongestSeconds)
    return usage_error(fmt::format("the schedule would last {:.3g} s; raise the rate or --speedup", seconds));
  return {};
}

Status validate_random(const ArrivalOptions& o) {
  TS_TRY_STATUS(validate_rate(o.rate, "--request-rate"));
  if (std::isinf(o.rate))
    return usage_error("a finite --request-rate is needed for this arrival law, found inf", "--request-rate");
  if (!o.count && !o.duration) return usage_error("--num-prompts or --duration must say how long the load lasts");
  const double seconds = o.duration ? to_seconds(*o.duration) : static_cast<double>(*o.count) / o.rate;
  const double requests = o.count ? static_cast<double>(*o.count) : o.rate * seconds;
  return validate_size(requests, seconds);
}

Status validate_stages(const ArrivalOptions& o) {
  if (o.stages.empty()) return usage_error("--stages needs at least one rate:length, e.g. 1:30s,5:30s", "--stages");
  double requests = 0, seconds = 0;
  for (const Stage& stage : o.stages) {
    TS_TRY_STATUS(validate_rate(stage.rate, "--stages"));
    if (std::isinf(stage.rate) || stage.length <= 0)
      return usage_error("each stage of --stages needs a finite rate and a length above 0", "--stages");
    seconds += to_seconds(stage.length);
    requests += stage.rate * to_seconds(stage.length);
  }
  return validate_size(requests, seconds);
}

}  // namespace

std::string_view to_string(ArrivalKind kind) {
  switch (kind) {
    case ArrivalKind::burst:
      return "all at once";
    case ArrivalKind::constant:
      return "constant";
    case ArrivalKind::gamma:
      return "gamma";
    case ArrivalKind::stages:
      return "stages";
    case ArrivalKind::trace:
      return "trace";
    case ArrivalKind::closed_loop:
      return "closed loop";
  }
  return "";
}

Status ArrivalOptions::validate() const {
  if (std::isnan(burstiness) || burstiness <= 0)
    return usage_error(
        fmt::format("--burstiness must be greater than 0 (1: Poisson, inf: constant), found {}", burstiness),
        "--burstiness");
  if (duration && *duration <= 0) return usage_error("--duration must be greater than 0, e.g. 60s", "--duration");
  switch (kind) {
    case ArrivalKind::constant:
    case ArrivalKind::gamma:
      return validate_random(*this);
    case ArrivalKind::stages:
      return validate_stages(*this);
    case ArrivalKind::trace:
      if (std::isfinite(speedup) && speedup > 0)
        return validate_size(0, trace.empty() ? 0 : to_seconds(trace.back()) / speedup);
      return usage_error(fmt::format("--speedup must be a number greater than 0, found {}", speedup), "--speedup");
    case ArrivalKind::burst:
      if (count) return validate_size(static_cast<double>(*count), 0);
      return usage_error(
          "--request-rate inf with --duration alone has no end of requests: add --max-concurrency, "
          "or give a finite --request-rate",
          "--request-rate");
    case ArrivalKind::closed_loop:
      return count ? validate_size(static_cast<double>(*count), 0) : Status{};
  }
  return {};
}

ArrivalKind arrival_kind(double rate, double burstiness) {
  if (std::isinf(rate) && rate > 0) return ArrivalKind::burst;
  return std::isinf(burstiness) && burstiness > 0 ? ArrivalKind::constant : ArrivalKind::gamma;
}

Result<std::vector<Stage>> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  for (const std::string_view part : split(text, ',')) {
    const auto halves = split(trim(part), ':');
    const auto rate = halves.size() == 2 ? parse_double(halves[0]) : std::nullopt;
    const auto length = halves.size() == 2 ? parse_duration(halves[1]) : std::nullopt;
    if (!rate || !length || !(*rate > 0) || std::isinf(*rate) || *length <= 0)
      return usage_error(fmt::format("--stages expects rate:length pairs such as 1:30s,5:30s,20:30s with both above 0, "
                                     "found \"{}\"",
                                     trim(part)),
                         "--stages");
    stages.push_back({*rate, *length});
  }
  return stages;
}

std::vector<TimeNs> make_arrivals(const ArrivalOptions& options) {
  TS_CHECK(options.validate().has_value(), "arrival options are validated first");
  switch (options.kind) {
    case ArrivalKind::burst:
      return std::vector<TimeNs>(*options.count, 0);
    case ArrivalKind::closed_loop:
      return std::vector<TimeNs>(options.count.value_or(0), kUnknownTime);
    case ArrivalKind::stages:
      return by_stages(options);
    case ArrivalKind::trace:
      return by_trace(options);
    case ArrivalKind::constant:
    case ArrivalKind::gamma:
      break;
  }
  return options.duration ? by_duration(options) : by_count(options, *options.count);
}

OrderedTrace order_trace(const std::vector<TimeNs>& recorded) {
  OrderedTrace trace;
  for (std::size_t i = 1; i < recorded.size(); ++i) trace.unsorted += recorded[i] < recorded[i - 1] ? 1 : 0;
  trace.order.resize(recorded.size());
  std::iota(trace.order.begin(), trace.order.end(), 0u);
  std::stable_sort(trace.order.begin(), trace.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return recorded[a] < recorded[b]; });
  for (const std::uint32_t row : trace.order) trace.times.push_back(recorded[row] - recorded[trace.order.front()]);
  return trace;
}

}  // namespace tokenstone::workload
