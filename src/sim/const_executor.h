// A simulated device whose step takes a constant time per prompt token plus a constant for decoding anything, and the
// whole engine around it. For tests, for `--target sim:const`, and wherever a result shall be checked by hand.
//
// Ownership: ConstEngine owns scheduler, executor and engine loop and borrows the Loop, which outlives it.
// Threads: the loop's. Units: integer nanoseconds, exact. Failure: a configuration that cannot work gives an Error.
#pragma once

#include <memory>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "runtime/engine_loop.h"
#include "runtime/executor.h"
#include "sched/scheduler.h"

namespace tokenstone::sim {

struct ConstCosts {
  TimeNs prefill_ns_per_token = 0;
  TimeNs decode_ns = 0;
};

/// Step time = prefill_ns_per_token x prefill tokens + (decode_ns if any sequence decodes). The row that completes a
/// prompt samples its first token in that step and does not count as decoding. Tokens are a function of (sequence,
/// position) and never end a text.
class ConstExecutor final : public runtime::Executor {
 public:
  /// Precondition: `vocab_size` is larger than the number of ids in `never`.
  ConstExecutor(ConstCosts costs, std::uint32_t vocab_size, std::vector<TokenId> never);
  const sched::StepResult& execute(const sched::StepPlan& plan, TimeNs start) override;
  bool is_real_time() const override { return false; }

 private:
  TokenId token_at(SeqId seq, std::uint64_t position) const;
  ConstCosts costs_;
  std::uint32_t vocab_size_;
  std::vector<TokenId> never_;
  sched::StepResult result_;
};

struct ConstEngine {
  std::unique_ptr<sched::Scheduler> scheduler;
  std::unique_ptr<ConstExecutor> executor;
  std::unique_ptr<runtime::EngineLoop> engine;
};

/// `--sim-prefill-us-per-token` and `--sim-decode-us` as costs; refuses negative, endless and absurd values.
Result<ConstCosts> const_costs_from_us(double prefill_us_per_token, double decode_us);

/// `steps` may be null.
Result<ConstEngine> make_const_engine(Loop& loop, const sched::SchedulerConfig& config, ConstCosts costs,
                                      record::StepSink* steps, std::uint32_t vocab_size = 32'000);

}  // namespace tokenstone::sim
