// The limits that a person gives: `--goodput ttft:200 tpot:50` per request, `--slo "ttft.p99<500ms, tpot.p99<50ms"` for
// the run.
//
// Names: ttft, tpot, itl, e2el (also e2e). A goodput limit is in milliseconds unless it has a unit (ttft:0.2s); `itl`
// judges the p99 of a request's own gaps, `itl.p90` another quantile. An objective names its quantile (p50, p99.9,
// median) and its unit (us, ms, s);
// `<` and `<=` are the same: the limit itself is within.
// Ownership: plain values. Threads: any. Failure: a usage error that names the word at fault and the nearest right
// name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/run.h"

namespace tokenstone::judge {

Result<record::Limit> parse_goodput_limit(std::string_view word);
/// One word each; a metric given twice is an error.
Result<std::vector<record::Limit>> parse_goodput(const std::vector<std::string>& words);

/// Comma-separated objectives.
Result<std::vector<record::Limit>> parse_slo(std::string_view text);

/// "p99", "p99.9", "p50".
std::string quantile_name(double quantile);

}  // namespace tokenstone::judge
