// `tokenstone report RUN` and `tokenstone export RUN`: from a saved run's records alone.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "app/command.h"
#include "judge/verdict.h"
#include "record/metrics.h"
#include "report/result_json.h"
#include "report/summary.h"
#include "store/run_folder.h"

namespace tokenstone::app {
namespace {

struct ReportFlags {
  std::string run, json, explain;
  bool full = false, quiet = false;
};

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

report::SummaryOptions summary_options(const ReportFlags& flags) {
  using Detail = report::SummaryOptions::Detail;
  return {.detail = flags.quiet  ? Detail::quiet
                    : flags.full ? Detail::full
                                 : Detail::compact,
          .colour = report::wants_colour(isatty(STDOUT_FILENO) == 1, std::getenv("NO_COLOR"))};
}

/// To the file named, or to stdout for "-".
Status write_text(const std::string& path, std::string_view text) {
  if (path == "-") {
    print(text);
    return {};
  }
  return record::write_file_atomically(path, text);
}

int explain(const std::string& key) {
  const auto text = report::explain_key(key);
  if (!text) return report_error(text.error());
  print(*text);
  return 0;
}

int report_run(const ReportFlags& flags) {
  const auto run = store::load_run(flags.run);
  if (!run) return report_error(run.error());
  const record::MetricSet metrics = record::compute_metrics(*run);
  const judge::Verdict verdict = judge::judge(*run, metrics);
  if (!flags.json.empty())
    if (const Status written = write_text(flags.json, report::result_json(*run, metrics, verdict)); !written)
      return report_error(written.error());
  if (flags.json != "-") print(report::summary(*run, metrics, verdict, summary_options(flags)));
  return verdict.exit_code;
}

}  // namespace

int run_report(const Args& args) {
  ReportFlags flags;
  FlagSet set("report", "The summary of a saved run, made from its records.");
  set.positional("RUN", &flags.run, "a run folder, for instance runs/0001");
  set.add("json", &flags.json, "FILE", "write result.json to FILE; - for stdout, and nothing else there");
  set.add("full", &flags.full, "", "percentile spectrum, lengths, errors by class, environment");
  set.add("quiet", &flags.quiet, "", "the first line only");
  set.add("explain", &flags.explain, "KEY", "what a metric means, here and in vLLM");
  const auto parsed = set.parse(args);
  if (!parsed) return report_error(parsed.error());
  if (parsed->help) {
    print(set.help());
    return 0;
  }
  if (!flags.explain.empty()) return explain(flags.explain);
  if (flags.run.empty())
    return report_error(
        {ErrorKind::usage, "report: expected a run folder, for instance: tokenstone report runs/0001", ""});
  return report_run(flags);
}

int run_export(const Args& args) {
  std::string run, events, output = "-";
  FlagSet set("export", "The binary records of a saved run as text.");
  set.positional("RUN", &run, "a run folder, for instance runs/0001");
  set.add("events", &events, "FORMAT", "every token event; FORMAT is csv");
  set.add("output", &output, "FILE", "where to; - is stdout", {"o"});
  const auto parsed = set.parse(args);
  if (!parsed) return report_error(parsed.error());
  if (parsed->help) {
    print(set.help());
    return 0;
  }
  if (run.empty() || events.empty())
    return report_error({ErrorKind::usage,
                         "export: expected a run folder and what to export: tokenstone export runs/0001 --events csv",
                         ""});
  if (events != "csv")
    return report_error(
        {ErrorKind::usage, fmt::format("export: --events: expected csv, found '{}'", events), "events"});
  const auto text = store::events_csv(run);
  if (!text) return report_error(text.error());
  if (const Status written = write_text(output, *text); !written) return report_error(written.error());
  return 0;
}

}  // namespace tokenstone::app
