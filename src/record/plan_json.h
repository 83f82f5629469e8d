// plan.json: everything that is needed to repeat a run, as JSON, and back. The key of a field is the field's name.
//
// Left out are the flags that only say where results go (is_output_flag): two runs of one plan into two folders leave
// the same plan. Infinity is written as the string "inf"; what is not set is null. Failure: a text that is no plan of
// this version gives an error that names the field.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "record/run.h"

namespace tokenstone::record {

inline constexpr int kPlanVersion = 1;

/// `name` without leading dashes; `_` and `-` are the same.
bool is_output_flag(std::string_view name);
/// The arguments without the flags that say where results go.
std::vector<std::string> without_output_flags(const std::vector<std::string>& argv);

/// Indented, with a line end.
std::string plan_to_json(const RunPlan& plan);
Result<RunPlan> plan_from_json(std::string_view text, const std::string& path);

}  // namespace tokenstone::record
