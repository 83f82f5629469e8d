// The progress line of a run, on stderr: redrawn four times a second on a terminal, one `key=value` line per 10 s
// elsewhere, first and last line always. Reads counters that the runner writes; runs on a thread of its own, so the
// display never costs the measurement. Ownership: borrows the counters; stops and joins when it goes.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "loadgen/runner.h"

namespace tokenstone::loadgen {

struct ProgressView {
  int phase = 0;
  TimeNs elapsed = 0;              ///< of the measured phase
  std::optional<TimeNs> expected;  ///< length of the measured phase, when the schedule says it
  std::uint64_t planned = 0, sent = 0, completed = 0, failed = 0, output_tokens = 0;
  std::uint32_t in_flight = 0;
  double output_tokens_per_s = 0;  ///< since the view before
};

/// One line of at most 79 columns for a terminal.
std::string progress_line(const ProgressView& view);
/// One `key=value` line for a file.
std::string progress_fields(const ProgressView& view);

class Progress {
 public:
  Progress(const ProgressCounters& counters, std::optional<TimeNs> expected, bool terminal, std::FILE* out);
  ~Progress();

 private:
  ProgressView view();
  void print();
  void work();

  const ProgressCounters& counters_;
  const std::optional<TimeNs> expected_;
  const bool terminal_;
  std::FILE* const out_;
  std::uint64_t last_tokens_ = 0;
  TimeNs last_time_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tokenstone::loadgen
