// The table of metrics: one row for each number that a run gives, with its unit, the direction that is better, what it
// means, its formula, and what vLLM's key of the same purpose means. Every printer, `--explain` and docs/methodology.md
// take their words from here.
//
// Ownership: static data. Threads: any. Failure: none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tokenstone::record {

enum class MetricKind {
  distribution,  ///< a sample with quantiles
  scalar,        ///< one number
};
enum class Direction { lower, higher, neither };
std::string_view to_string(Direction direction);

struct MetricDescriptor {
  std::string_view key;  ///< "ttft"; in vLLM's JSON the blocks `{mean,median,std,pNN}_ttft_ms`
  std::string_view title;
  std::string_view unit;  ///< "ms", "tokens", "req/s", "tok/s", "%", "requests", ""
  MetricKind kind = MetricKind::scalar;
  Direction better = Direction::neither;
  std::string_view definition;
  std::string_view formula;
  std::string_view vllm;  ///< vLLM's definition; empty: vLLM has no such number
};

std::span<const MetricDescriptor> metric_table();
/// nullptr for an unknown key.
const MetricDescriptor* find_metric(std::string_view key);
/// The descriptor behind any key of result.json: "ttft", "p99_ttft_ms", "request_throughput"; nullptr when there is
/// none.
const MetricDescriptor* metric_of_key(std::string_view key);

}  // namespace tokenstone::record
