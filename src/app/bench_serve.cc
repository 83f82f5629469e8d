// `tokenstone bench serve`: plan, run, record, judge, print; once or --num-runs times.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "app/bench_options.h"
#include "app/bench_plan.h"
#include "app/bench_target.h"
#include "app/command.h"
#include "app/engine_flags.h"
#include "app/flag_tables.h"
#include "base/text.h"
#include "judge/verdict.h"
#include "loadgen/progress.h"
#include "loadgen/runner.h"
#include "platform/environment.h"
#include "platform/real_loop.h"
#include "platform/signals.h"
#include "record/metrics.h"
#include "record/plan_json.h"
#include "report/result_json.h"
#include "report/summary.h"
#include "store/run_folder.h"

namespace tokenstone::app {
namespace {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Steps into memory for the summary, and into the run folder. Called on the engine's thread; read after it was
/// detached.
class StepKeeper final : public record::StepSink {
 public:
  explicit StepKeeper(record::StepSink* file) : file_(file) {}
  void on_step(const record::StepRecord& step) override {
    steps.push_back(step);
    if (file_ != nullptr) file_->on_step(step);
  }
  std::vector<record::StepRecord> steps;

 private:
  record::StepSink* file_;
};

class FolderSink final : public loadgen::RunSink {
 public:
  FolderSink(store::RunFolder* folder, bool virtual_time) : folder_(folder), virtual_(virtual_time) {}
  Status on_request(const record::RequestRecord& request) override {
    if (folder_ == nullptr) return {};
    folder_->on_request(request);
    // Virtual time passes too quickly for the wall's seconds: what matters there is that memory stays bounded.
    return virtual_ ? Status{} : folder_->maybe_flush(platform::monotonic_now());
  }
  Status flush() override { return folder_ == nullptr ? Status{} : folder_->flush(); }

 private:
  store::RunFolder* folder_;
  bool virtual_;
};

struct Session {
  BenchServeOptions options;
  EngineFlags engine;
  FlagSet::Parsed parsed;
  std::vector<std::string> argv;  ///< "bench", "serve", flags
};

/// One measured run and what was made of it.
struct Measured {
  record::RunResult run;
  record::MetricSet metrics;
  judge::Verdict verdict;
};

report::SaveOptions save_options(const BenchServeOptions& o) {
  return {.folder = o.result_dir, .file_name = o.result_filename, .append = o.append_result};
}

bool saves_vllm_result(const BenchServeOptions& o) { return o.save_result || o.save_detailed || o.append_result; }

loadgen::RunnerOptions runner_options(const Session& s, PlannedLoad& load, const PlanContext& context) {
  loadgen::RunnerOptions r;
  r.pacer = load.pacer;
  r.planned = load.requests.size();
  r.num_warmups = load.plan.num_warmups;
  r.warmup_concurrency = load.plan.max_concurrency.value_or(8);
  r.source = [&load, &s](std::uint32_t index) {
    if (index < load.requests.size()) return std::move(load.requests[index]);
    record::RequestSpec spec = load.source->at(index);
    spec.sampling.max_tokens = static_cast<std::int32_t>(spec.output_len);
    spec.sampling.ignore_eos = s.options.ignore_eos;
    return spec;
  };
  r.warmup_source = [&load, &s](std::uint32_t index) {
    record::RequestSpec spec = load.source->warmup(index);
    spec.sampling.max_tokens = static_cast<std::int32_t>(spec.output_len);
    spec.sampling.ignore_eos = s.options.ignore_eos;
    return spec;
  };
  if (context.tokenizer != nullptr) {
    r.count_tokens = [tokenizer = context.tokenizer](const std::string& text) {
      return static_cast<std::int64_t>(tokenizer->encode(text, {.add_special = false}).size());
    };
  }
  r.keep_text = s.options.save_detailed;
  if (load.pacer.stop_at != kNever) r.drain_limit = parse_duration(s.options.drain_timeout).value_or(60 * kSecond);
  return r;
}

record::RunResult to_result(const PlannedLoad& load, loadgen::RunnerOutcome outcome, BenchTarget& bench,
                            StepKeeper& steps) {
  record::RunResult run;
  run.plan = load.plan;
  run.requests = std::move(outcome.requests);
  run.plan.num_prompts = run.requests.size();
  run.steps = std::move(steps.steps);
  run.engine_blocks = bench.num_blocks();
  run.engine_block_size = bench.block_size();
  run.audit = std::move(outcome.audit);
  bench.describe_stamps(run.audit);
  run.phases = std::move(outcome.phases);
  run.interrupted = outcome.interrupted;
  run.interruption = outcome.interruption;
  run.server_died = outcome.server_died;
  TimeNs first = kNever, last = 0;
  for (const record::RequestRecord& r : run.requests) {
    if (r.was_sent()) first = std::min(first, r.sent);
    if (r.finished != kUnknownTime) last = std::max(last, r.finished);
  }
  run.window_start = run.plan.duration ? 0 : (first == kNever ? 0 : first);
  run.window_end = run.plan.duration ? *run.plan.duration : std::max(run.window_start, last);
  if (outcome.warmups_failed > 0)
    run.plan.notes.push_back(fmt::format("{} of {} warm-up requests failed: {}", outcome.warmups_failed,
                                         run.plan.num_warmups, outcome.warmup_error));
  return run;
}

Result<Measured> measure(const Session& s, BenchTarget& bench, PlannedLoad& load, store::RunFolder* folder) {
  const PlanContext context = bench.context();
  const bool virtual_time = context.target.virtual_time;
  StepKeeper steps(folder != nullptr ? &folder->step_sink() : nullptr);
  FolderSink sink(folder, virtual_time);
  loadgen::Runner runner(bench.loop(), bench.target(), &sink, runner_options(s, load, context));

  std::optional<platform::SignalWatch> signals;
  std::optional<loadgen::Progress> progress;
  if (!virtual_time) {
    signals.emplace(bench.loop(), std::initializer_list<int>{SIGINT, SIGTERM}, [&](int number) {
      runner.interrupt(number == SIGINT ? "interrupted by Ctrl-C" : "interrupted by SIGTERM");
    });
    if (s.options.json != "-" || isatty(STDERR_FILENO) != 0)
      progress.emplace(runner.progress(), load.expected, isatty(STDERR_FILENO) != 0, stderr);
  }
  loadgen::RunnerOutcome outcome = runner.run([&](TimeNs start) { bench.set_steps(&steps, start); });
  bench.set_steps(nullptr, 0);
  progress.reset();
  signals.reset();

  Measured m{.run = to_result(load, std::move(outcome), bench, steps), .metrics = {}, .verdict = {}};
  if (folder != nullptr) m.run.run_dir = folder->path();
  m.metrics = record::compute_metrics(m.run);
  m.verdict = judge::judge(m.run, m.metrics);
  return m;
}

Status write_results(const Session& s, const Measured& m, store::RunFolder* folder) {
  const std::string json = report::result_json(m.run, m.metrics, m.verdict);
  if (folder != nullptr) TS_TRY_STATUS(folder->finish(m.run, json));
  if (saves_vllm_result(s.options)) {
    TS_TRY(const std::string path, report::save_vllm_result(m.run, m.metrics, save_options(s.options)));
    fmt::print(stderr, "saved {}\n", path);
  }
  if (s.options.json == "-") {
    print(json);
  } else if (!s.options.json.empty()) {
    TS_TRY_STATUS(record::write_file_atomically(s.options.json, json));
  }
  return {};
}

void print_summary(const Session& s, const Measured& m) {
  if (s.options.json == "-") return;
  using Detail = report::SummaryOptions::Detail;
  const report::SummaryOptions options{
      .detail = s.options.quiet  ? Detail::quiet
                : s.options.full ? Detail::full
                                 : Detail::compact,
      .colour = report::wants_colour(isatty(STDOUT_FILENO) == 1, std::getenv("NO_COLOR"))};
  print(report::summary(m.run, m.metrics, m.verdict, options));
}

Result<std::unique_ptr<BenchTarget>> connect(const Session& s) {
  if (s.options.is_http()) return connect_http(s.options);
  return s.options.is_sim() ? connect_sim(s.options, s.engine) : connect_engine(s.options, s.engine);
}

/// The folder is made before the first request; one that a failed ready check leaves unused goes again.
Result<std::optional<store::RunFolder>> make_folder(const Session& s, const record::RunPlan& plan, std::int64_t run) {
  if (s.options.no_run_dir) return std::optional<store::RunFolder>{};
  std::string dir = s.options.run_dir;
  if (!dir.empty() && s.options.num_runs > 1)
    dir = (std::filesystem::path(dir) / fmt::format("{:02}", run + 1)).string();
  TS_TRY(auto folder, store::RunFolder::create(dir, plan));
  return std::optional<store::RunFolder>(std::move(folder));
}

Result<Measured> one_run(const Session& s, BenchTarget& bench, std::int64_t run) {
  TS_TRY(PlannedLoad load, plan_load(s.options, s.parsed, s.argv, bench.context(), run));
  if (saves_vllm_result(s.options)) TS_TRY_STATUS(report::check_result_path(load.plan, save_options(s.options)));
  for (const std::string& note : load.plan.dataset.notes) fmt::print(stderr, "note: {}\n", note);
  TS_TRY(std::optional<store::RunFolder> folder, make_folder(s, load.plan, run));
  if (run == 0) {
    if (Status ready = bench.ready_check(); !ready) {
      std::error_code ignored;
      if (folder) std::filesystem::remove_all(folder->path(), ignored);
      return std::unexpected(ready.error());
    }
  }
  TS_TRY(Measured m, measure(s, bench, load, folder ? &*folder : nullptr));
  TS_TRY_STATUS(write_results(s, m, folder ? &*folder : nullptr));
  return m;
}

int run_all(const Session& s) {
  auto bench = connect(s);
  if (!bench) return report_error(bench.error());
  for (const std::string& line : (*bench)->start_log()) fmt::print(stderr, "{}\n", line);
  for (const std::string& note : s.parsed.notes) fmt::print(stderr, "note: {}\n", note);
  if (s.options.dry_run) {
    const auto load = plan_load(s.options, s.parsed, s.argv, (*bench)->context(), 0);
    if (!load) return report_error(load.error());
    print(s.options.json == "-" ? schedule_json(*load) : schedule_text(*load));
    return 0;
  }
  int exit_code = 0;
  std::vector<record::MetricSet> sets;
  for (std::int64_t run = 0; run < s.options.num_runs; ++run) {
    auto measured = one_run(s, **bench, run);
    if (!measured) return report_error(measured.error());
    print_summary(s, *measured);
    exit_code = std::max(exit_code, measured->verdict.exit_code);
    sets.push_back(std::move(measured->metrics));
    if (measured->run.interrupted) break;
  }
  if (sets.size() > 1 && s.options.json != "-") print("\n" + report::spread_table(record::spread_of(sets)));
  return exit_code;
}

/// Whether the schedule says how long each answer is: random prompts, length laws and traces. vLLM sets ignore_eos for
/// random and timed_trace; a law's or a trace's lengths mean as little when the model ends its text early.
bool lengths_are_planned(const BenchServeOptions& o) {
  if (!o.workload.empty()) return true;
  if (o.dataset_path.empty())
    return o.dataset_name.empty() || o.dataset_name == "random" || o.dataset_name == "sharegpt";
  const auto kind =
      o.dataset_name.empty() ? workload::detect_dataset(o.dataset_path) : workload::parse_dataset_name(o.dataset_name);
  return kind && (*kind == workload::DatasetKind::azure || *kind == workload::DatasetKind::mooncake);
}

Result<Args> replayed_args(const std::string& run, const Args& args) {
  TS_TRY(const record::RunResult saved, store::load_run(run));
  const std::vector<std::string>& argv = saved.plan.argv;
  if (argv.size() < 2 || argv[0] != "bench" || argv[1] != "serve")
    return usage_error(fmt::format("--replay: '{}' was not made by bench serve", run), "replay");
  Args all(argv.begin() + 2, argv.end());
  all = record::without_output_flags(all);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--replay")
      ++i;
    else if (!args[i].starts_with("--replay="))
      all.push_back(args[i]);
  }
  return all;
}

FlagSet bench_serve_flags(Session& s) {
  FlagSet flags("bench serve",
                "Puts load on a server with an OpenAI-compatible streaming API, on the embedded engine, or on the "
                "scheduler in virtual "
                "time, and says how it did. Exit 0 passed, 1 wrong use, 2 an objective missed, 3 result not valid, 4 "
                "unreachable or interrupted.");
  add_bench_serve_flags(flags, s.options);
  add_engine_flags(flags, s.engine);
  add_foreign_engine_flags(flags);
  return flags;
}

Result<Session> parse_session(const Args& args, bool& helped) {
  Session s;
  FlagSet flags = bench_serve_flags(s);
  TS_TRY(s.parsed, flags.parse(args));
  helped = s.parsed.help;
  if (helped) print(flags.help());
  s.argv = {"bench", "serve"};
  s.argv.insert(s.argv.end(), args.begin(), args.end());
  return s;
}

}  // namespace

FlagSet bench_serve_flag_table() {
  static Session unread;
  return bench_serve_flags(unread);
}

int run_bench_serve(const Args& args) {
  bool helped = false;
  auto session = parse_session(args, helped);
  if (!session) return report_error(session.error());
  if (helped) return 0;
  if (!session->options.replay.empty()) {
    const auto all = replayed_args(session->options.replay, args);
    if (!all) return report_error(all.error());
    session = parse_session(*all, helped);
    if (!session) return report_error(session.error());
  }
  if (!session->options.explain.empty()) {
    const auto text = report::explain_key(session->options.explain);
    if (!text) return report_error(text.error());
    print(*text);
    return 0;
  }
  if (const Status valid = session->options.validate(session->parsed); !valid) return report_error(valid.error());
  if (!session->parsed.was_given("ignore-eos") && lengths_are_planned(session->options)) {
    session->options.ignore_eos = true;
    session->parsed.values["ignore-eos"] = "true";
  }
  // Virtual time ends by itself and has nothing to drain: Ctrl-C simply ends it.
  if (!session->options.is_sim()) platform::block_signals({SIGINT, SIGTERM});
  platform::set_precise_timers();
  platform::raise_open_file_limit();
  return run_all(*session);
}

}  // namespace tokenstone::app
