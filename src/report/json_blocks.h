// The blocks that result.json and vLLM's file share. Private to report.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "record/metrics.h"
#include "record/run.h"

namespace tokenstone::report {

using Json = nlohmann::ordered_json;

inline Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}
/// A count, written without a fraction.
inline Json whole(std::optional<double> value) {
  return value ? Json(static_cast<std::int64_t>(std::llround(*value))) : Json(nullptr);
}

/// vLLM's header, rates and latency blocks, in vLLM's order.
Json vllm_scalars(const record::RunResult& run, const record::MetricSet& metrics);

/// Bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json, int indent);

}  // namespace tokenstone::report
