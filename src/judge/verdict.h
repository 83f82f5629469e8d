// Is the result valid, did it meet its objective, and what should a reader know about it?
//
//   INVALID  the result must not be used: interrupted (exit 4); the server died, nothing completed, or more than 5 % of
//   the
//            requests failed (exit 3)
//   FAIL     valid, and an objective of --slo was not met, or could not be measured (exit 2)
//   PASS     valid, every objective met (exit 0);   DONE: valid, no objective (exit 0)
//
// Ownership: plain values. Threads: any. Units: latencies in ms, shares in [0, 1]. Failure: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/metrics.h"
#include "record/run.h"

namespace tokenstone::judge {

/// More failed requests than this share of the ended ones, and the result is not valid.
inline constexpr double kFailedShareLimit = 0.05;

enum class Word { pass, fail, done, invalid };
/// "PASS", "FAIL", "DONE", "INVALID".
std::string_view to_string(Word word);

/// Something a reader should know: what, on which evidence, and what to do. Codes: docs/formats.md.
struct Finding {
  std::string code;      ///< "V01"
  std::string text;      ///< what is the matter
  std::string evidence;  ///< the figures behind it
  std::string advice;    ///< a flag or an act
};

struct ObjectiveResult {
  record::Limit limit;
  std::optional<double> value_ms;  ///< none: no request has the metric
  std::uint64_t n = 0;
  std::uint64_t needed = 0;  ///< sample size that makes the quantile reliable
  bool reliable = false;
  bool pass = false;
};

struct Verdict {
  Word word = Word::done;
  int exit_code = 0;
  std::vector<std::string> reasons;  ///< why it is INVALID
  std::vector<ObjectiveResult> objectives;
  std::vector<Finding> findings;
  double failed_share = 0;  ///< of the requests that ended
  bool has_finding(std::string_view code) const;
};

Verdict judge(const record::RunResult& run, const record::MetricSet& metrics);

}  // namespace tokenstone::judge
