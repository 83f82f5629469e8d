// The further sections of `--full`, and `--explain`.
#include <fmt/format.h>

#include "base/text.h"
#include "judge/limits.h"
#include "report/figures.h"
#include "report/summary.h"

namespace tokenstone::report {
namespace {

using record::MetricDescriptor;
using record::MetricSet;
using record::RunResult;

constexpr double kSpectrum[] = {0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999};
constexpr const char* kLatencies[] = {"ttft", "ttft_intended", "tpot", "itl", "e2el", "e2el_intended", "queue"};

std::string error_table(const MetricSet& metrics) {
  if (metrics.errors.empty()) return "errors    none\n";
  std::string out = "errors    class                            n    first s    last s\n";
  for (const record::ErrorCount& e : metrics.errors) {
    std::string name(to_string(e.error_class));
    if (e.http_status > 0) name += fmt::format(" {}", e.http_status);
    const auto at = [](TimeNs t) {
      return t == kUnknownTime ? std::string("n/a") : fmt::format("{:.1f}", to_seconds(t));
    };
    out += fmt::format("          {:<28} {:>6} {:>9} {:>9}\n", name, format_count(static_cast<std::int64_t>(e.count)),
                       at(e.first), at(e.last));
    if (!e.sample.empty()) out += wrap_words("            for instance: ", to_valid_utf8(e.sample));
  }
  return out;
}

std::string spectrum(const MetricSet& metrics) {
  std::string out = pad_right("spectrum", 10);
  std::vector<std::pair<const stats::Sample*, Scale>> columns;
  for (const char* key : kLatencies) {
    const stats::Sample& sample = metrics.sample(key);
    columns.emplace_back(&sample, time_scale(sample.quantile(0.5).value));
  }
  for (const char* title : {"TTFT", "intended", "TPOT", "ITL", "E2E", "intended", "queue"}) out += pad_left(title, 10);
  out += "\n" + pad_right("", 10);
  for (const auto& [sample, scale] : columns) out += pad_left(scale.unit, 10);
  out += "\n";
  for (const double q : kSpectrum) {
    out += pad_right("  " + judge::quantile_name(q), 10);
    for (const auto& [sample, scale] : columns) out += pad_left(quantile_cell(*sample, q, scale.factor), 10);
    out += "\n";
  }
  out += pad_right("  max", 10);
  for (const auto& [sample, scale] : columns)
    out += pad_left(sample->empty() ? "n/a" : format_figure(sample->max() * scale.factor), 10);
  return out + "\n";
}

std::string length_row(std::string_view title, const stats::Sample& sample) {
  std::string row = "          " + pad_right(title, 14);
  row += pad_left(sample.empty() ? "n/a" : format_figure(sample.min()), 8);
  for (const double q : {0.5, 0.9, 0.99}) row += pad_left(quantile_cell(sample, q, 1), 8);
  row += pad_left(sample.empty() ? "n/a" : format_figure(sample.max()), 8) +
         pad_left(sample.empty() ? "n/a" : format_figure(sample.mean()), 9);
  return row + "\n";
}

std::string lengths(const MetricSet& metrics) {
  std::string out = pad_right("lengths", 24);
  for (const char* title : {"min", "p50", "p90", "p99", "max"}) out += pad_left(title, 8);
  out += pad_left("mean", 9) + "\n";
  out += length_row("prompt tokens", metrics.sample("prompt_tokens")) +
         length_row("output tokens", metrics.sample("output_tokens"));
  std::vector<std::string> sources;
  for (const auto& [source, n] : metrics.length_sources)
    sources.push_back(fmt::format("{} {}", source == record::LengthSource::unknown ? "unknown" : to_string(source),
                                  format_count(static_cast<std::int64_t>(n))));
  if (!sources.empty()) out += wrap_words("          ", "output tokens counted by: " + join(sources, ", "));
  return out;
}

std::string list(std::string_view title, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    out += wrap_words(pad_right(out.empty() ? title : "", 12), line);
  }
  return out;
}

std::string environment(const RunResult& run) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : run.plan.environment)
    lines.push_back(fmt::format("{}: {}", key, value.empty() ? "unknown" : value));
  return list("environment", lines);
}

std::string phases(const RunResult& run) {
  std::vector<std::string> parts;
  for (const auto& [name, length] : run.phases)
    parts.push_back(fmt::format("{} {}", name, time_text(to_millis(length))));
  return parts.empty() ? "" : wrap_parts("phases    ", parts, " · ");
}

std::string dataset(const RunResult& run) {
  const record::DatasetInfo& d = run.plan.dataset;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {} rows, {} used{}", d.name, format_count(static_cast<std::int64_t>(d.rows)),
                              format_count(static_cast<std::int64_t>(d.used)), d.oversampled ? ", with repeats" : ""));
  if (!d.law.empty()) lines.push_back("length law: " + d.law);
  for (const auto& [reason, rows] : d.dropped)
    lines.push_back(fmt::format("dropped {} rows: {}", format_count(static_cast<std::int64_t>(rows)), reason));
  lines.insert(lines.end(), d.notes.begin(), d.notes.end());
  return d.name.empty() ? "" : list("data set", lines);
}

std::string tokenizer(const RunResult& run) {
  return wrap_words("tokenizer   ", run.plan.tokenizer_id.empty() ? "none" : run.plan.tokenizer_id);
}

}  // namespace

std::string full_sections(const RunResult& run, const MetricSet& metrics) {
  std::string out = spectrum(metrics) + "\n" + lengths(metrics) + "\n" + error_table(metrics) + "\n" + phases(run);
  out += dataset(run) + tokenizer(run) + environment(run);
  out += list("deviations", run.plan.deviations) + list("notes", run.plan.notes);
  return out;
}

Result<std::string> explain_key(std::string_view key) {
  const MetricDescriptor* metric = record::metric_of_key(key);
  if (metric == nullptr) {
    std::vector<std::string> keys;
    for (const MetricDescriptor& row : record::metric_table()) keys.emplace_back(row.key);
    const auto near = nearest_name(key, keys);
    return usage_error(
        fmt::format("--explain '{}': no such metric; {}", key,
                    near ? fmt::format("did you mean '{}'?", *near) : "expected one of " + join(keys, ", ")));
  }
  std::string out = fmt::format("{}  {}{}\n", metric->key, metric->title,
                                metric->unit.empty() ? "" : fmt::format(", {}", metric->unit));
  out += wrap_words("  tokenstone  ", metric->definition);
  out += wrap_words("  formula     ", metric->formula);
  out += wrap_words("  vLLM        ", metric->vllm.empty() ? "has no such number" : metric->vllm);
  return out + fmt::format("  better      {}\n", to_string(metric->better));
}

}  // namespace tokenstone::report
