#include "judge/verdict.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "judge/findings.h"

namespace tokenstone::judge {
namespace {

using record::Limit;
using record::MetricSet;
using record::RunResult;

ObjectiveResult judge_objective(const Limit& limit, const MetricSet& metrics) {
  TS_CHECK(limit.quantile.has_value(), "an objective of a run has a quantile");
  const stats::Sample& sample = metrics.sample(limit.metric);
  ObjectiveResult result;
  result.limit = limit;
  result.n = sample.count();
  const stats::Quantile quantile = sample.quantile(*limit.quantile);
  result.needed = quantile.needed;
  if (sample.empty()) return result;
  result.value_ms = quantile.value;
  result.reliable = quantile.reliable;
  result.pass = quantile.value <= limit.limit_ms;
  return result;
}

std::string share_reason(std::uint64_t failed, std::uint64_t ended) {
  return fmt::format("{} of {} requests failed ({:.1f} %); at most 5 % may",
                     format_count(static_cast<std::int64_t>(failed)), format_count(static_cast<std::int64_t>(ended)),
                     100.0 * static_cast<double>(failed) / static_cast<double>(ended));
}

void check_validity(const RunResult& run, const MetricSet& metrics, Verdict& verdict) {
  const std::uint64_t failed = metrics.count("failed"), completed = metrics.count("completed"),
                      ended = failed + completed;
  if (ended > 0) verdict.failed_share = static_cast<double>(failed) / static_cast<double>(ended);
  if (run.interrupted)
    verdict.reasons.push_back(fmt::format(
        "partial result, {}: {} of {} requests ended", run.interruption.empty() ? "interrupted" : run.interruption,
        format_count(static_cast<std::int64_t>(ended)), format_count(static_cast<std::int64_t>(metrics.planned))));
  if (run.server_died) verdict.reasons.push_back("the server died during the run");
  if (completed == 0 && failed > 0) {
    verdict.reasons.push_back(fmt::format("all {} requests failed", format_count(static_cast<std::int64_t>(failed))));
  } else if (completed == 0) {
    verdict.reasons.push_back("no request completed");
  } else if (verdict.failed_share > kFailedShareLimit) {
    verdict.reasons.push_back(share_reason(failed, ended));
  }
}

}  // namespace

std::string_view to_string(Word word) {
  switch (word) {
    case Word::pass:
      return "PASS";
    case Word::fail:
      return "FAIL";
    case Word::done:
      return "DONE";
    case Word::invalid:
      return "INVALID";
  }
  return "";
}

bool Verdict::has_finding(std::string_view code) const {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
}

Verdict judge(const RunResult& run, const MetricSet& metrics) {
  Verdict verdict;
  for (const Limit& limit : run.plan.slo) verdict.objectives.push_back(judge_objective(limit, metrics));
  check_validity(run, metrics, verdict);
  verdict.findings = find_all(run, metrics, verdict.objectives);
  const bool met =
      std::all_of(verdict.objectives.begin(), verdict.objectives.end(), [](const auto& o) { return o.pass; });
  if (!verdict.reasons.empty()) {
    verdict.word = Word::invalid;
    verdict.exit_code = run.interrupted ? 4 : 3;
  } else if (verdict.objectives.empty()) {
    verdict.word = Word::done;
  } else {
    verdict.word = met ? Word::pass : Word::fail;
    verdict.exit_code = met ? 0 : 2;
  }
  return verdict;
}

}  // namespace tokenstone::judge
