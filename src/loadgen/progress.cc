#include "loadgen/progress.h"

#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "platform/real_loop.h"

namespace tokenstone::loadgen {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{250};
constexpr std::chrono::seconds kFileInterval{10};

const char* phase_name(int phase) {
  switch (phase) {
    case ProgressCounters::connect:
      return "connect";
    case ProgressCounters::warmup:
      return "warm-up";
    case ProgressCounters::measure:
      return "measure";
    case ProgressCounters::drain:
      return "drain";
    default:
      return "done";
  }
}

}  // namespace

std::string progress_line(const ProgressView& v) {
  std::string line = fmt::format("{:<8}{:>5.0f} s", phase_name(v.phase), to_seconds(v.elapsed));
  if (v.expected && v.phase == ProgressCounters::measure) line += fmt::format(" of {:.0f}", to_seconds(*v.expected));
  line += fmt::format(" | {}", format_count(static_cast<std::int64_t>(v.completed)));
  if (v.planned > 0) line += fmt::format("/{}", format_count(static_cast<std::int64_t>(v.planned)));
  line += fmt::format(" done, {} open", v.in_flight);
  if (v.failed > 0) line += fmt::format(", {} failed", format_count(static_cast<std::int64_t>(v.failed)));
  line += fmt::format(" | {} tok/s", format_figure(v.output_tokens_per_s));
  return line.substr(0, 79);
}

std::string progress_fields(const ProgressView& v) {
  std::string line = fmt::format(
      "phase={} elapsed_s={:.1f} planned={} sent={} completed={} failed={} in_flight={} output_tok_s={:.1f}",
      phase_name(v.phase), to_seconds(v.elapsed), v.planned, v.sent, v.completed, v.failed, v.in_flight,
      v.output_tokens_per_s);
  if (v.expected) line += fmt::format(" expected_s={:.1f}", to_seconds(*v.expected));
  return line;
}

Progress::Progress(const ProgressCounters& counters, std::optional<TimeNs> expected, bool terminal, std::FILE* out)
    : counters_(counters),
      expected_(expected),
      terminal_(terminal),
      out_(out),
      last_time_(platform::monotonic_now()),
      thread_([this] { work(); }) {}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

ProgressView Progress::view() {
  const TimeNs now = platform::monotonic_now();
  ProgressView v;
  v.phase = counters_.phase;
  const TimeNs start = counters_.measure_start;
  v.elapsed = start == 0 ? 0 : std::max<TimeNs>(0, now - start);
  v.expected = expected_;
  v.planned = counters_.planned;
  v.sent = counters_.sent;
  v.completed = counters_.completed;
  v.failed = counters_.failed;
  v.in_flight = counters_.in_flight;
  v.output_tokens = counters_.output_tokens;
  // The counter starts again with the measured phase.
  const std::uint64_t fresh = v.output_tokens >= last_tokens_ ? v.output_tokens - last_tokens_ : v.output_tokens;
  v.output_tokens_per_s = now > last_time_ ? static_cast<double>(fresh) / to_seconds(now - last_time_) : 0;
  last_tokens_ = v.output_tokens;
  last_time_ = now;
  return v;
}

void Progress::print() {
  const ProgressView v = view();
  if (terminal_) {
    fmt::print(out_, "\r\x1b[K{}", progress_line(v));
  } else {
    fmt::print(out_, "{}\n", progress_fields(v));
  }
  std::fflush(out_);
}

void Progress::work() {
  print();
  const auto interval =
      terminal_ ? std::chrono::milliseconds(kTerminalInterval) : std::chrono::milliseconds(kFileInterval);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return closing_; })) {
    lock.unlock();
    print();
    lock.lock();
  }
  lock.unlock();
  print();
  if (terminal_) {
    std::fputs("\r\x1b[K", out_);  // the line goes; the summary takes its place
    std::fflush(out_);
  }
}

}  // namespace tokenstone::loadgen
