// The summary that a person reads: the shape, labels and words of it are fixed (docs/formats.md). 80 columns; no
// control codes unless `colour` is set; the same numbers as result.json, from the same MetricSet.
//
// Ownership: plain values. Threads: any. Failure: none.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "judge/verdict.h"
#include "record/metrics.h"
#include "record/run.h"

namespace tokenstone::report {

struct SummaryOptions {
  enum class Detail { quiet, compact, full };
  Detail detail = Detail::compact;
  bool colour = false;
};

std::string summary(const record::RunResult& run, const record::MetricSet& metrics, const judge::Verdict& verdict,
                    const SummaryOptions& options = {});

/// The further sections of `--full`: errors, lengths, percentile spectrum, environment, deviations, notes.
std::string full_sections(const record::RunResult& run, const record::MetricSet& metrics);

/// Colour is for a terminal whose user did not set NO_COLOR.
bool wants_colour(bool is_terminal, const char* no_color);

/// What a key of the summary or of result.json means, here and in vLLM; an error with the nearest key.
Result<std::string> explain_key(std::string_view key);

/// The command that repeats the run.
std::string repeat_command(const record::RunResult& run);

}  // namespace tokenstone::report
