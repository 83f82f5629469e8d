// The catalogue of findings, V01 and on (docs/formats.md): each looks at one thing and says nothing when all is well.
//
// Ownership: plain values. Threads: any. Failure: none.
#pragma once

#include <vector>

#include "judge/verdict.h"

namespace tokenstone::judge {

/// In the order of their codes.
std::vector<Finding> find_all(const record::RunResult& run, const record::MetricSet& metrics,
                              const std::vector<ObjectiveResult>& objectives);

}  // namespace tokenstone::judge
