#include "report/summary.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "judge/limits.h"
#include "record/plan_json.h"
#include "report/figures.h"

namespace tokenstone::report {
namespace {

using judge::ObjectiveResult;
using judge::Verdict;
using judge::Word;
using record::MetricSet;
using record::RunResult;

std::string count(std::uint64_t n) { return format_count(static_cast<std::int64_t>(n)); }
std::string plural(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", count(n), noun, n == 1 ? "" : "s");
}
std::string figure(std::optional<double> value) { return value ? format_figure(*value) : "n/a"; }
std::string brief(std::optional<double> value) { return value ? report::brief(*value) : "n/a"; }

std::string metric_title(std::string_view key) { return std::string(record::find_metric(key)->title); }

/// "at 12.0 req/s for 300 s": the load that the answer belongs to.
std::string load_text(const RunResult& run, const MetricSet& metrics) {
  std::string load = "all at once";
  if (const auto offered = metrics.value("offered_rate")) {
    load = fmt::format("at {} req/s", format_figure(*offered));
  } else if (run.plan.max_concurrency) {
    load = fmt::format("with {} in flight", count(*run.plan.max_concurrency));
  }
  if (const auto seconds = metrics.value("duration")) load += fmt::format(" for {}", time_text(*seconds * 1e3));
  return load;
}

/// The objective to show: one that failed, else the one nearest to its limit.
const ObjectiveResult* tightest(const Verdict& verdict) {
  const ObjectiveResult* worst = nullptr;
  double worst_share = -1;
  for (const ObjectiveResult& o : verdict.objectives) {
    const double share = o.value_ms ? *o.value_ms / o.limit.limit_ms : HUGE_VAL;
    if (share <= worst_share) continue;
    worst = &o;
    worst_share = share;
  }
  return worst;
}

std::string objective_text(const ObjectiveResult& o) {
  const std::string name = fmt::format("{} {}", judge::quantile_name(*o.limit.quantile), metric_title(o.limit.metric));
  if (!o.value_ms) return fmt::format("{} not measured, limit {}", name, time_text(o.limit.limit_ms));
  return fmt::format("{} {}{} {} {}", name, time_text(*o.value_ms), o.reliable ? "" : "~", o.pass ? "<=" : ">",
                     time_text(o.limit.limit_ms));
}

std::string headline(const RunResult& run, const MetricSet& metrics, const Verdict& verdict) {
  if (verdict.word == Word::invalid) return verdict.reasons.front();
  std::string text;
  if (const ObjectiveResult* o = tightest(verdict)) {
    text = objective_text(*o);
    if (verdict.objectives.size() > 1) text += fmt::format(" (+{} more)", verdict.objectives.size() - 1);
  } else {
    const stats::Sample& ttft = metrics.sample("ttft");
    const double q = ttft.quantile(0.99).available ? 0.99 : 0.5;
    if (ttft.empty()) {
      text = fmt::format("{} completed", plural(metrics.count("completed"), "request"));
    } else {
      text = fmt::format("{} TTFT {}{}", judge::quantile_name(q), time_text(ttft.quantile(q).value),
                         ttft.quantile(q).reliable ? "" : "~");
    }
  }
  return fmt::format("{}  {}", text, load_text(run, metrics));
}

/// Wraps what a terminal shows in colour; words and marks carry the meaning.
class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  std::string word(Word word) const {
    const std::string name(to_string(word));
    const char* code = word == Word::pass ? "1;32" : word == Word::done ? "1" : word == Word::fail ? "1;31" : "1;33";
    return on_ ? fmt::format("\033[{}m{}\033[0m", code, name) : name;
  }
  /// Greys each line.
  std::string grey(std::string_view text) const {
    if (!on_) return std::string(text);
    std::string out;
    for (const std::string_view line : split(text, '\n'))
      out += line.empty() ? "\n" : fmt::format("\033[2m{}\033[0m\n", line);
    out.pop_back();
    return out;
  }

 private:
  bool on_;
};

std::string first_line(const RunResult& run, const MetricSet& metrics, const Verdict& verdict, const Paint& paint) {
  const std::string name(to_string(verdict.word));
  const std::string blanks(verdict.word == Word::invalid ? 1 : 7 - name.size(), ' ');
  return paint.word(verdict.word) + blanks +
         cut(headline(run, metrics, verdict), kColumns - name.size() - blanks.size()) + "\n";
}

std::string hardware(const RunResult& run) {
  for (const char* key : {"gpu", "cpu"}) {
    const auto found = run.plan.environment.find(key);
    if (found != run.plan.environment.end() && !found->second.empty() && found->second != "unknown" &&
        found->second != "none")
      return found->second;
  }
  return "hardware unknown";
}

std::string goodput_line(const MetricSet& metrics) {
  std::vector<std::string> parts;
  if (const auto good = metrics.value("request_goodput")) {
    parts.push_back(
        fmt::format("goodput {} req/s ({} %)", format_figure(*good), figure(metrics.value("slo_attainment"))));
  } else {
    parts.push_back(fmt::format("delivered {} req/s", figure(metrics.value("request_throughput"))));
  }
  parts.push_back(fmt::format("{} output tok/s", figure(metrics.value("output_throughput"))));
  parts.push_back(plural(metrics.count("failed"), "error"));
  return wrap_parts("       ", parts, " · ");
}

std::string subject_line(const RunResult& run) {
  std::vector<std::string> parts;
  parts.push_back(run.plan.model_id.empty() ? "model unknown" : run.plan.model_id);
  parts.push_back(run.plan.target_kind == "http" || run.plan.target_kind.empty()
                      ? (run.plan.server_version.empty() || run.plan.server_version == "unknown"
                             ? "server unknown"
                             : run.plan.server_version)
                      : run.plan.target_address);
  if (!run.plan.virtual_time) parts.push_back(hardware(run));
  parts.push_back("plan " + run.plan.plan_hash);
  return wrap_parts("       ", parts, " · ");
}

std::string rate_line(const RunResult& run, const MetricSet& metrics) {
  const auto offered = metrics.value("offered_rate"), delivered = metrics.value("request_throughput"),
             good = metrics.value("request_goodput");
  const std::vector<std::string> texts = aligned_rates({offered.value_or(0), delivered.value_or(0), good.value_or(0)});
  std::vector<std::string> parts;
  parts.push_back(offered                    ? fmt::format("offered {} req/s", texts[0])
                  : run.plan.max_concurrency ? "offered closed loop"
                                             : "offered all at once");
  parts.push_back(delivered ? fmt::format("delivered {}{}", texts[1], offered ? "" : " req/s") : "delivered n/a");
  if (good) parts.push_back(fmt::format("good {}", texts[2]));
  if (metrics.value("peak_in_flight"))
    parts.push_back(fmt::format("in flight {} (max {})", brief(metrics.value("mean_in_flight")),
                                count(metrics.count("peak_in_flight"))));
  std::size_t width = 9;
  for (const std::string& part : parts) width += display_width(part);
  const bool roomy = width + 3 * (parts.size() - 1) <= kColumns;
  return wrap_parts("rate     ", parts, roomy ? "   " : "  ");
}

std::string tokens_line(const MetricSet& metrics) {
  return wrap_parts(
      "tokens/s ",
      {"input " + figure(metrics.value("input_throughput")), "output " + figure(metrics.value("output_throughput")),
       "total " + figure(metrics.value("total_token_throughput"))},
      "   ");
}

constexpr double kQuantiles[] = {0.5, 0.9, 0.99, 0.999};

std::string table_row(std::string_view title, const stats::Sample& sample, bool is_time) {
  const Scale scale = is_time ? time_scale(sample.quantile(0.5).value) : Scale{"", 1};
  std::string row = pad_right(title, 15) + pad_right(scale.unit, 3);
  row.resize(18, ' ');
  for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
    row += pad_left(quantile_cell(sample, kQuantiles[i], scale.factor), 8);
  row += pad_left(sample.empty() ? "n/a" : format_figure(sample.max() * scale.factor), 8);
  row += pad_left(count_cell(sample.count()), 8);
  return row + "\n";
}

std::string small_sample_note(const MetricSet& metrics) {
  std::vector<std::string> needs;
  for (const double q : kQuantiles) {
    bool marked = false;
    for (const char* key : {"ttft", "tpot", "itl", "e2el", "output_tokens"})
      marked |= !metrics.sample(key).empty() && !metrics.sample(key).quantile(q).reliable;
    if (marked) needs.push_back(fmt::format("{} needs {}", judge::quantile_name(q), count(stats::samples_needed(q))));
  }
  if (needs.empty()) return "";
  return wrap_words("       ", fmt::format("~ fewer than 10 samples beyond: {} requests", join(needs, ", ")));
}

std::string latency_table(const MetricSet& metrics) {
  std::string table = pad_right("", 18);
  for (const char* title : {"p50", "p90", "p99", "p99.9", "max", "n"}) table += pad_left(title, 8);
  table += "\n";
  table += table_row("TTFT", metrics.sample("ttft"), true);
  table += table_row("TPOT", metrics.sample("tpot"), true);
  table += table_row("ITL", metrics.sample("itl"), true);
  if (!metrics.sample("itl_per_token").empty())
    table += table_row("ITL per token", metrics.sample("itl_per_token"), true);
  table += table_row("E2E", metrics.sample("e2el"), true);
  table += table_row("output tokens", metrics.sample("output_tokens"), false);
  return table + small_sample_note(metrics);
}

std::string engine_line(const MetricSet& m) {
  if (!m.value("engine_step_mean")) return "";
  std::vector<std::string> parts;
  parts.push_back(
      fmt::format("queue mean {} max {}", brief(m.value("engine_queue_mean")), count(m.count("engine_queue_max"))));
  parts.push_back("batch mean " + brief(m.value("engine_batch_mean")));
  if (const auto free = m.value("engine_kv_free_min"))
    parts.push_back(fmt::format("KV blocks free min {} %", report::brief(*free)));
  if (const auto hits = m.value("engine_prefix_hits"))
    parts.push_back(fmt::format("prefix hits {} %", report::brief(*hits)));
  parts.push_back("preemptions " + count(m.count("engine_preemptions")));
  parts.push_back("step " + time_text(*m.value("engine_step_mean")));
  return wrap_parts("engine    ", parts, " · ");
}

std::string requests_line(const MetricSet& m) {
  std::vector<std::string> parts = {
      count(m.planned) + " planned", count(m.sent) + " sent", count(m.count("completed_in_window")) + " in window",
      count(m.count("completed_in_drain")) + " in drain", count(m.count("failed")) + " failed"};
  if (const std::uint64_t unsent = m.count("unsent")) parts.push_back(count(unsent) + " unsent");
  return wrap_parts("requests  ", parts, " · ");
}

std::string generator_line(const RunResult& run, const MetricSet& metrics, const Verdict& verdict) {
  if (run.plan.virtual_time) return "generator virtual time, no lag  ok\n";
  std::vector<std::string> parts;
  const stats::Sample& lag = metrics.sample("send_lag");
  parts.push_back(lag.empty() ? "send lag n/a"
                              : fmt::format("send lag p99 {} ms", report::brief(lag.quantile(0.99).value)));
  parts.push_back(fmt::format("stall max {} ms", report::brief(to_millis(run.audit.loop_stall_max))));
  const double cpu = run.audit.cpu_share;
  parts.push_back(cpu >= 0 ? fmt::format("CPU {} %", report::brief(100 * cpu)) : "CPU unknown");
  if (cpu > 0) parts.push_back(fmt::format("{}x headroom", report::brief(1 / cpu)));
  parts.back() += verdict.has_finding("V08") ? "  slow" : "  ok";
  return wrap_parts("generator ", parts, " · ");
}

std::string findings_lines(const Verdict& verdict) {
  std::string out;
  for (const judge::Finding& f : verdict.findings) {
    out += wrap_words(pad_right(f.code, 10), fmt::format("{} ({})", f.text, f.evidence));
    out += wrap_words("          -> ", f.advice);
  }
  return out;
}

std::string folder_lines(const RunResult& run) {
  std::string out;
  if (!run.run_dir.empty()) {
    const std::string records = run.run_dir + "/requests.csv", result = run.run_dir + "/result.json";
    const std::string one = fmt::format("records   {}      result  {}\n", records, result);
    out += display_width(one) <= kColumns + 1 ? one : fmt::format("records   {}\nresult    {}\n", records, result);
  }
  return out + "again     " + repeat_command(run) + "\n";
}

/// Why an INVALID result must not be used, beyond line one.
std::string further_reasons(const Verdict& verdict) {
  std::string out;
  for (std::size_t i = verdict.word == Word::invalid ? 1 : 0; i < verdict.reasons.size(); ++i)
    out += wrap_words("        ", verdict.reasons[i]);
  return out;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") ==
                                          std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\'";
    out += c;
  }
  return out + "'";
}

}  // namespace

std::string summary(const RunResult& run, const MetricSet& metrics, const Verdict& verdict,
                    const SummaryOptions& options) {
  const Paint paint(options.colour);
  std::string first = first_line(run, metrics, verdict, paint);
  if (options.detail == SummaryOptions::Detail::quiet) return first;
  std::string numbers = goodput_line(metrics) + subject_line(run) + "\n" + rate_line(run, metrics) +
                        tokens_line(metrics) + latency_table(metrics) + "\n";
  numbers += engine_line(metrics) + requests_line(metrics) + generator_line(run, metrics, verdict);
  std::string out = first + further_reasons(verdict) + (verdict.word == Word::invalid ? paint.grey(numbers) : numbers);
  out += findings_lines(verdict) + "\n";
  if (options.detail == SummaryOptions::Detail::full) out += full_sections(run, metrics) + "\n";
  return out + folder_lines(run);
}

bool wants_colour(bool is_terminal, const char* no_color) {
  return is_terminal && (no_color == nullptr || *no_color == '\0');
}

std::string repeat_command(const RunResult& run) {
  if (!run.run_dir.empty()) return "tokenstone bench serve --replay " + shell_word(run.run_dir);
  std::string command = "tokenstone";
  std::size_t column = 10 + command.size();
  for (const std::string& word : record::without_output_flags(run.plan.argv)) {
    const std::string text = shell_word(word);
    if (column + 3 + display_width(text) > kColumns) {
      command += " \\\n         ";
      column = 9;
    }
    command += " " + text;
    column += 1 + display_width(text);
  }
  return command;
}

}  // namespace tokenstone::report
