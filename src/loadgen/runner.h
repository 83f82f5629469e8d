// Carries out a schedule on a Target: warm-up, measurement, drain; each request becomes a record.
//
// Ownership: borrows loop, target, source and sink for the run. Threads: the loop's thread, except `progress()`
// counters, which any thread may read. Times: records are relative to the run's start, the instant t0 of the measured
// phase. Failure: a request's failure is a record; a sink that cannot write, an interruption or a dead server end the
// run early and are said in the outcome; completed + failed + unsent = planned always holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "loadgen/pacer.h"
#include "record/records.h"
#include "record/request_spec.h"
#include "record/run.h"
#include "runtime/target.h"

namespace tokenstone::loadgen {

/// Gives the request with a given index; called once per index, in ascending order.
using SpecSource = std::function<record::RequestSpec(std::uint32_t)>;
/// Counts the tokens of an answer, special tokens left out; used when the server's usage is missing. Any thread.
using OutputCounter = std::function<std::int64_t(const std::string&)>;

/// Where finished requests go as they come. A failed write ends the run as interrupted.
class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual Status on_request(const record::RequestRecord& request) = 0;
  /// Called at least each second.
  virtual Status flush() = 0;
};

/// What the progress display reads; written by the loop's thread only.
struct ProgressCounters {
  enum Phase : int { connect, warmup, measure, drain, done };
  std::atomic<int> phase{connect};
  std::atomic<std::uint64_t> planned{0}, sent{0}, completed{0}, failed{0}, output_tokens{0};
  std::atomic<std::uint32_t> in_flight{0}, waiting{0};
  std::atomic<TimeNs> measure_start{0};
};

struct RunnerOptions {
  PacerOptions pacer;
  std::uint64_t planned = 0;  ///< requests of the schedule; in a closed loop by duration not known (0)
  std::uint32_t num_warmups = 0;
  std::uint32_t warmup_concurrency = 8;
  SpecSource source;
  SpecSource warmup_source;             ///< prompts that no measured request shares
  OutputCounter count_tokens;           ///< may be empty
  bool keep_text = false;               ///< keep the text of successes too (--save-detailed)
  std::size_t text_cap = 1 << 20;       ///< kept bytes of a failed request's text
  TimeNs drain_limit = kNever;          ///< by duration: how long after the window answers are waited for
  std::uint32_t refused_in_a_row = 20;  ///< this many refused connections one after another: the server is gone
};

struct RunnerOutcome {
  std::vector<record::RequestRecord> requests;  ///< planned order, unsent ones included
  record::ClientAudit audit;
  TimeNs start = 0;  ///< t0, absolute
  TimeNs end = 0;    ///< relative: when the last answer was in
  std::vector<std::pair<std::string, TimeNs>> phases;
  std::uint64_t warmups_failed = 0;
  std::string warmup_error;  ///< of the first failed warm-up
  bool interrupted = false;
  std::string interruption;
  bool server_died = false;
};

class Runner {
 public:
  Runner(Loop& loop, runtime::Target& target, RunSink* sink, RunnerOptions options);
  ~Runner();
  /// `at_start` is called with t0 just before the measured phase (the step records' origin).
  RunnerOutcome run(const std::function<void(TimeNs)>& at_start);
  /// Stop sending, drain, report. The second time: stop at once. On the loop's thread.
  void interrupt(std::string reason);
  const ProgressCounters& progress() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::loadgen
