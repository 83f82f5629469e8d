// What `bench serve` measures, connected and ready: a server over HTTP, the embedded engine on its own thread, or
// virtual time.
//
// Ownership: a BenchTarget owns loop, target and whatever stands behind it. Threads: the main thread (the client
// loop's). Failure: unreachable for a server that cannot be reached or answers wrongly, usage for options that cannot
// be.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/bench_options.h"
#include "app/bench_plan.h"
#include "app/engine_flags.h"
#include "base/loop.h"
#include "base/result.h"
#include "record/records.h"
#include "runtime/target.h"

namespace tokenstone::app {

class BenchTarget {
 public:
  virtual ~BenchTarget() = default;
  virtual Loop& loop() = 0;
  virtual runtime::Target& target() = 0;
  virtual PlanContext context() const = 0;
  /// One request that shares nothing with what is measured; before the first run.
  virtual Status ready_check() { return {}; }
  /// Sends the engine's step records, with times from `origin`, to `steps` from now on; null: nowhere. When it returns
  /// after a null, no call is under way any more. Targets without an engine ignore it.
  virtual void set_steps(record::StepSink* /*steps*/, TimeNs /*origin*/) {}
  virtual std::uint32_t num_blocks() const { return 0; }
  virtual std::uint32_t block_size() const { return 0; }
  /// Lines for stderr: the engine's start log, notes.
  virtual std::vector<std::string> start_log() const { return {}; }
  /// What the target can say of its stamps after a run.
  virtual void describe_stamps(record::ClientAudit& /*audit*/) const {}
};

Result<std::unique_ptr<BenchTarget>> connect_http(const BenchServeOptions& options);
Result<std::unique_ptr<BenchTarget>> connect_engine(const BenchServeOptions& options, const EngineFlags& flags);
Result<std::unique_ptr<BenchTarget>> connect_sim(const BenchServeOptions& options, const EngineFlags& flags);

}  // namespace tokenstone::app
