// The engine's loop: (Loop, Scheduler, Executor), the same class in real and in virtual time.
//
// One step: plan -> execute -> (time passes) -> apply -> detokenize, stop strings -> outputs to the sinks -> step
// record. Aborts and submissions act between steps. It sleeps when nothing is waiting or running. Ownership: borrows
// loop, scheduler, executor, processor and step sink, all of which outlive it; a sink must live until its finished
// output or until `cancel` returns. Threads: the loop's thread only; from elsewhere use `Loop::post`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "record/records.h"
#include "runtime/executor.h"
#include "runtime/output_processor.h"
#include "sched/request.h"

namespace tokenstone::sched {
class Scheduler;
}

namespace tokenstone::runtime {

struct EngineRequest {
  std::string request_id;
  std::vector<TokenId> prompt;
  sched::SamplingParams sampling;
  std::uint64_t cache_salt = 0;
};

/// A sequence's life inside the engine; absolute times of the loop's clock.
struct EngineTiming {
  TimeNs arrival = kUnknownTime, scheduled_prefill = kUnknownTime, prefill_end = kUnknownTime, finished = kUnknownTime;
  std::int32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, chunks = 0, preemptions = 0;
};

/// What one step gave one sequence.
struct EngineOutput {
  SeqId seq;
  TimeNs at = 0;                    ///< end of the step
  std::span<const TokenId> tokens;  ///< new tokens; the end-of-text token is not among them
  std::string_view text;            ///< new text; may be empty though tokens are not
  bool finished = false;
  sched::FinishReason reason = sched::FinishReason::none;
  std::string_view stop_reason;          ///< the stop string found, if any
  const EngineTiming* timing = nullptr;  ///< always there
};

class EngineSink {
 public:
  virtual ~EngineSink() = default;
  virtual void on_output(const EngineOutput& output) = 0;
};

/// Running totals and gauges, as /metrics and the start log want them.
struct EngineStats {
  std::uint64_t steps = 0, prompt_tokens = 0, generation_tokens = 0, preemptions = 0;
  std::uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0, evictions = 0;
  std::uint64_t requests_finished_stop = 0, requests_finished_length = 0, requests_finished_abort = 0;
  std::uint32_t running = 0, waiting = 0;
  std::uint32_t num_blocks = 0, block_size = 0, blocks_active = 0;
  double kv_cache_usage() const { return num_blocks == 0 ? 0.0 : static_cast<double>(blocks_active) / num_blocks; }
};

class EngineLoop {
 public:
  /// `processor` and `steps` may be null.
  EngineLoop(Loop& loop, sched::Scheduler& scheduler, Executor& executor, OutputProcessor* processor,
             record::StepSink* steps);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  /// Queues a request. Errors: ErrorKind::usage for an empty prompt or bad sampling values, too_large with both numbers
  /// for a request that can never fit (context or KV). max_tokens 0 finishes at once with `length`.
  Result<SeqId> submit(EngineRequest request, EngineSink& sink);
  /// Frees the sequence before the next step; its sink is not called again. Unknown ids are ignored.
  void cancel(SeqId seq);
  /// False while any block is in use.
  bool reset_prefix_cache();
  EngineStats stats() const;
  bool idle() const;
  /// Step records are written relative to this instant (the run's start); 0 at first.
  void set_step_origin(TimeNs origin);
  void set_step_sink(record::StepSink* steps);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::runtime
