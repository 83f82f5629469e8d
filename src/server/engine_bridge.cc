#include "server/engine_bridge.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "base/check.h"

namespace tokenstone::server {

/// What lives on the engine's thread. Every function posted there shares it, so it outlives the bridge if it must.
struct EngineBridge::EngineSide final : record::StepSink, std::enable_shared_from_this<EngineSide> {
  struct Sequence final : runtime::EngineSink {
    EngineSide* side = nullptr;
    GroupId group;
    std::uint32_t index = 0;
    SeqId seq;
    bool submitted = false, finished = false;
    void on_output(const runtime::EngineOutput& output) override { side->take_output(*this, output); }
  };
  struct Group {
    std::vector<Sequence> sequences;  // never resized while the engine holds pointers into it
    std::size_t unfinished = 0;
  };

  // fixed after construction
  runtime::EngineLoop& engine;
  Loop& engine_loop;
  Loop& io_loop;
  record::StepSink* next_steps;
  QueueLimits limits;
  std::weak_ptr<BatchHandler> on_batch;
  // engine thread only
  std::unordered_map<GroupId, std::unique_ptr<Group>> groups;
  std::vector<GroupId> done_groups;
  EngineBatch building;
  bool flush_posted = false;
  std::uint32_t waiting_after_plan = 0;
  // shared
  mutable std::mutex stats_mutex;
  runtime::EngineStats latest_stats;

  EngineSide(runtime::EngineLoop& e, Loop& el, Loop& io, record::StepSink* next, QueueLimits l,
             std::weak_ptr<BatchHandler> handler)
      : engine(e), engine_loop(el), io_loop(io), next_steps(next), limits(l), on_batch(std::move(handler)) {}

  void attach() {
    engine.set_step_sink(this);
    note_stats();
  }

  void detach() {
    std::vector<GroupId> all;
    for (const auto& [id, group] : groups) all.push_back(id);
    for (const GroupId id : all) cancel(id);
    engine.set_step_sink(next_steps);
  }

  void note_stats() {
    const runtime::EngineStats now = engine.stats();
    const std::scoped_lock lock(stats_mutex);
    latest_stats = now;
  }

  /// A request is queued when the last step left somebody waiting, or when more are inside than may run. Those that
  /// only wait for the next step to begin are not: a burst on an idle engine is no full queue.
  Status admit(std::size_t count) const {
    const runtime::EngineStats now = engine.stats();
    const bool queueing = std::min(waiting_after_plan, now.waiting) > 0;
    const std::size_t inside = queueing ? now.waiting : now.waiting + now.running;
    const std::size_t most =
        queueing ? limits.max_queue : static_cast<std::size_t>(limits.max_num_seqs) + limits.max_queue;
    if (inside + count <= most) return {};
    return fail(
        ErrorKind::busy,
        fmt::format("the waiting queue is full: {} requests run, {} wait, this one brings {}, and --max-queue is {}; "
                    "try again later",
                    now.running, now.waiting, count, limits.max_queue));
  }

  void submit(GroupId id, std::vector<runtime::EngineRequest> requests) {
    const std::size_t first_event = building.events.size();
    if (auto admitted = admit(requests.size()); !admitted) return refuse(id, first_event, std::move(admitted).error());
    add_event(EngineEvent::accepted, id);
    auto& group = groups[id];
    group = std::make_unique<Group>();
    group->sequences.resize(requests.size());
    group->unfinished = requests.size();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Sequence& sequence = group->sequences[i];
      sequence.side = this;
      sequence.group = id;
      sequence.index = static_cast<std::uint32_t>(i);
      auto seq = engine.submit(std::move(requests[i]), sequence);
      if (!seq) return refuse(id, first_event, std::move(seq).error());
      sequence.seq = *seq;
      sequence.submitted = true;
    }
    note_stats();
  }

  void refuse(GroupId id, std::size_t first_event, Error error) {
    cancel(id);
    building.events.resize(first_event);  // what its earlier prompts said is void
    add_event(EngineEvent::refused, id).error = std::move(error);
  }

  void cancel(GroupId id) {
    const auto found = groups.find(id);
    if (found == groups.end()) return;  // ended by itself meanwhile
    for (const Sequence& sequence : found->second->sequences)
      if (sequence.submitted && !sequence.finished) engine.cancel(sequence.seq);
    groups.erase(found);
    note_stats();
  }

  EngineEvent& add_event(EngineEvent::Kind kind, GroupId group) {
    if (!std::exchange(flush_posted, true)) {
      // A step flushes at its end; this is for what happens between steps.
      engine_loop.post([self = shared_from_this()] {
        self->flush_posted = false;
        self->flush();
      });
    }
    EngineEvent& event = building.events.emplace_back();
    event.kind = kind;
    event.group = group;
    return event;
  }

  void take_output(Sequence& sequence, const runtime::EngineOutput& output) {
    EngineEvent& event = add_event(EngineEvent::output, sequence.group);
    event.index = sequence.index;
    event.at = output.at;
    event.text_begin = static_cast<std::uint32_t>(building.text.size());
    event.text_size = static_cast<std::uint32_t>(output.text.size());
    building.text += output.text;
    event.tokens = static_cast<std::int32_t>(output.tokens.size());
    event.timing = *output.timing;
    if (!output.finished) return;
    event.finished = true;
    event.reason = output.reason;
    event.stop_reason = output.stop_reason;
    sequence.finished = true;
    const auto group = groups.find(sequence.group);
    TS_CHECK(group != groups.end() && group->second->unfinished > 0, "output of a sequence that has ended");
    if (--group->second->unfinished == 0) done_groups.push_back(sequence.group);
  }

  void flush() {
    for (const GroupId id : done_groups) groups.erase(id);
    done_groups.clear();
    note_stats();
    if (building.events.empty()) return;
    io_loop.post([handler = on_batch, batch = std::exchange(building, {})] {
      if (const auto alive = handler.lock()) (*alive)(batch);
    });
  }

  void on_step(const record::StepRecord& step) override {
    waiting_after_plan = step.waiting_queue_len;
    if (next_steps != nullptr) next_steps->on_step(step);
    flush();
  }
};

EngineBridge::EngineBridge(runtime::EngineLoop& engine, Loop& engine_loop, Loop& io_loop, record::StepSink* next_steps,
                           QueueLimits limits, BatchHandler on_batch)
    : on_batch_(std::make_shared<BatchHandler>(std::move(on_batch))),
      engine_side_(std::make_shared<EngineSide>(engine, engine_loop, io_loop, next_steps, limits, on_batch_)) {
  engine_loop.post([side = engine_side_] { side->attach(); });
}

EngineBridge::~EngineBridge() {
  engine_side_->engine_loop.post([side = engine_side_] { side->detach(); });
}

void EngineBridge::submit(GroupId group, std::vector<runtime::EngineRequest> requests) {
  engine_side_->engine_loop.post([side = engine_side_, group, requests = std::move(requests)]() mutable {
    side->submit(group, std::move(requests));
  });
}

void EngineBridge::cancel(GroupId group) {
  engine_side_->engine_loop.post([side = engine_side_, group] { side->cancel(group); });
}

void EngineBridge::reset_prefix_cache(std::function<void(bool)> done) {
  engine_side_->engine_loop.post([side = engine_side_, done = std::move(done)]() mutable {
    const bool emptied = side->engine.reset_prefix_cache();
    side->note_stats();
    side->io_loop.post([handler = side->on_batch, done = std::move(done), emptied] {
      if (handler.lock()) done(emptied);
    });
  });
}

runtime::EngineStats EngineBridge::stats() const {
  const std::scoped_lock lock(engine_side_->stats_mutex);
  return engine_side_->latest_stats;
}

}  // namespace tokenstone::server
