// The output of `--num-runs`: mean and spread of each metric.
#include <fmt/format.h>

#include "base/text.h"
#include "report/figures.h"
#include "report/json_blocks.h"
#include "report/result_json.h"

namespace tokenstone::report {
namespace {

using record::Spread;

std::string unit_of(const std::string& key) {
  const record::MetricDescriptor* metric = record::metric_of_key(key);
  return metric == nullptr ? "" : std::string(metric->unit);
}

}  // namespace

std::string spread_json(const std::map<std::string, Spread>& spread) {
  Json j = Json::object();
  for (const auto& [key, s] : spread)
    j[key] = {{"n", s.n},
              {"unit", unit_of(key)},
              {"mean", number(s.mean)},
              {"std", number(s.std)},
              {"min", number(s.min)},
              {"max", number(s.max)},
              {"cv", number(s.cv)}};
  return dump(j, 2) + "\n";
}

std::string spread_table(const std::map<std::string, Spread>& spread) {
  constexpr const char* kKeys[] = {
      "request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
      "median_ttft",        "p99_ttft",        "median_tpot",       "p99_tpot",
      "median_itl",         "p99_itl",         "median_e2el",       "p99_e2el"};
  std::string out = pad_right("over runs", 32);
  for (const char* title : {"mean", "std", "min", "max", "CV %"}) out += pad_left(title, 9);
  out += "\n";
  for (const std::string key : kKeys) {
    const auto found = spread.find(key);
    if (found == spread.end()) continue;
    const Spread& s = found->second;
    out += pad_right(fmt::format("{} {}", key, unit_of(key)), 32);
    for (const double value : {s.mean, s.std, s.min, s.max}) out += pad_left(format_figure(value), 9);
    out += pad_left(s.cv ? format_figure(100 * *s.cv) : "n/a", 9) + "\n";
  }
  return out;
}

}  // namespace tokenstone::report
