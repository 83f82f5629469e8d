// The crossing between the server's I/O thread and the engine's thread.
//
// Requests go over as groups (the prompts of one HTTP request, all or none); what the engine says of them comes back in
// batches, one per step, so that a step with a hundred sequences wakes the I/O thread once.
// Ownership: borrows the engine, both loops and `next_steps`. It may be destroyed while the engine runs (what it left
// inside is cancelled), on the I/O thread or while that loop does not run; the I/O loop must outlive the engine's
// thread. Threads: the I/O thread, unless said otherwise. Times: of the engine loop's clock. Failure: a refused group
// comes back as an event.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "runtime/engine_loop.h"

namespace tokenstone::server {

using GroupId = Id<struct GroupTag, std::uint64_t>;

struct EngineEvent {
  enum Kind { accepted, refused, output } kind = output;
  GroupId group;
  std::uint32_t index = 0;  ///< which prompt of the group
  TimeNs at = 0;
  std::uint32_t text_begin = 0, text_size = 0;  ///< within EngineBatch::text
  std::int32_t tokens = 0;
  bool finished = false;
  sched::FinishReason reason = sched::FinishReason::none;
  runtime::EngineTiming timing;
  std::string stop_reason;
  Error error;  ///< of a refused group
};

struct EngineBatch {
  std::string text;
  std::vector<EngineEvent> events;
  std::string_view text_of(const EngineEvent& event) const {
    return std::string_view(text).substr(event.text_begin, event.text_size);
  }
};

/// How many requests may be inside the engine. Those that fit its running set are never counted as queued.
struct QueueLimits {
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_queue = 16384;
};

class EngineBridge {
 public:
  using BatchHandler = std::function<void(const EngineBatch&)>;

  EngineBridge(runtime::EngineLoop& engine, Loop& engine_loop, Loop& io_loop, record::StepSink* next_steps,
               QueueLimits limits, BatchHandler on_batch);
  ~EngineBridge();
  EngineBridge(const EngineBridge&) = delete;
  EngineBridge& operator=(const EngineBridge&) = delete;

  void submit(GroupId group, std::vector<runtime::EngineRequest> requests);
  /// Frees what the group holds before the next step. Events of it may still arrive and must be ignored.
  void cancel(GroupId group);
  /// Asks the engine to empty its prefix cache; `done` gets its answer.
  void reset_prefix_cache(std::function<void(bool)> done);
  /// The engine's state after what it did last. Any thread.
  runtime::EngineStats stats() const;

 private:
  struct EngineSide;
  std::shared_ptr<BatchHandler> on_batch_;  ///< what comes back after destruction finds it gone
  std::shared_ptr<EngineSide> engine_side_;
};

}  // namespace tokenstone::server
