#include "record/spread.h"

#include <cmath>

namespace tokenstone::record {
namespace {

using Columns = std::map<std::string, stats::Sample>;

void add_distribution(Columns& columns, std::string_view key, const stats::Sample& sample) {
  if (sample.empty()) return;
  const std::string name(key);
  columns["mean_" + name].add(sample.mean());
  columns["median_" + name].add(sample.quantile(0.5).value);
  columns["p90_" + name].add(sample.quantile(0.9).value);
  columns["p99_" + name].add(sample.quantile(0.99).value);
}

Spread spread(const stats::Sample& sample) {
  Spread s{sample.count(), sample.mean(), sample.population_std(), sample.min(), sample.max(), std::nullopt};
  if (s.mean != 0) s.cv = s.std / std::fabs(s.mean);
  return s;
}

}  // namespace

std::map<std::string, Spread> spread_of(const std::vector<MetricSet>& runs) {
  Columns columns;
  for (const MetricSet& run : runs) {
    for (const MetricDescriptor& metric : metric_table()) {
      if (metric.kind == MetricKind::distribution) {
        add_distribution(columns, metric.key, run.sample(metric.key));
      } else if (const auto value = run.value(metric.key)) {
        columns[std::string(metric.key)].add(*value);
      }
    }
  }
  std::map<std::string, Spread> result;
  for (const auto& [key, sample] : columns) result.emplace(key, spread(sample));
  return result;
}

}  // namespace tokenstone::record
