// From the flags of `bench serve` to a schedule: data set or law, arrivals, the plan that is saved.
// Ownership: a PlannedLoad owns its source and requests. Failure: one line for a person (usage).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/bench_options.h"
#include "loadgen/pacer.h"
#include "record/run.h"
#include "runtime/target.h"
#include "token/tokenizer.h"
#include "workload/arrivals.h"
#include "workload/source.h"

namespace tokenstone::app {

struct PlannedLoad {
  std::unique_ptr<workload::RequestSource> source;
  std::vector<record::RequestSpec> requests;  ///< empty in a closed loop by duration: made as slots become free
  loadgen::PacerOptions pacer;
  std::optional<TimeNs> expected;  ///< length of the measured phase, when the schedule says it
  record::RunPlan plan;
};

/// What the plan must know of the target.
struct PlanContext {
  runtime::TargetInfo target;
  std::string endpoint, tokenizer_name;
  token::TokenizerPtr tokenizer;  ///< may be null
  bool token_ids = false;         ///< prompts are ids: engine and sim targets, --prompt-token-ids
};

/// `run` counts repetitions: each has seeds of its own, so that no prompt of one is cached for the next.
Result<PlannedLoad> plan_load(const BenchServeOptions& options, const FlagSet::Parsed& parsed,
                              const std::vector<std::string>& argv, const PlanContext& context, std::int64_t run);

/// `--dry-run`: the schedule as text of 80 columns, or as JSON.
std::string schedule_text(const PlannedLoad& load);
std::string schedule_json(const PlannedLoad& load);

}  // namespace tokenstone::app
