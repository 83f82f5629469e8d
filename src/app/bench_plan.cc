#include "app/bench_plan.h"

#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/version.h"
#include "base/text.h"
#include "judge/limits.h"
#include "platform/environment.h"
#include "platform/real_loop.h"
#include "record/plan_json.h"
#include "workload/plan_hash.h"

namespace tokenstone::app {
namespace {

workload::WorkloadOptions workload_options(const BenchServeOptions& o, const PlanContext& context, std::uint64_t seed) {
  workload::WorkloadOptions w;
  w.dataset_name = o.dataset_name;
  w.dataset_path = o.dataset_path;
  w.workload = o.workload;
  w.scale = o.scale;
  w.num_prompts = static_cast<std::uint64_t>(o.num_prompts);
  w.no_oversample = o.no_oversample;
  w.disable_shuffle = o.disable_shuffle;
  w.form = context.token_ids ? workload::PromptForm::token_ids
                             : (o.backend == "openai-chat" ? workload::PromptForm::chat : workload::PromptForm::text);
  w.seeds = workload::Seeds(seed);
  w.random_input_len = o.random_input_len;
  w.random_output_len = o.random_output_len;
  w.random_prefix_len = o.random_prefix_len;
  w.random_range_ratio = o.random_range_ratio;
  w.sharegpt_output_len = o.sharegpt_output_len;
  w.sonnet_input_len = o.sonnet_input_len;
  w.sonnet_output_len = o.sonnet_output_len;
  w.sonnet_prefix_len = o.sonnet_prefix_len;
  w.custom_output_len = o.custom_output_len;
  w.timed_trace_chunk_hash_size = o.timed_trace_chunk_hash_size;
  w.timed_trace_sec_multiplier = o.timed_trace_sec_multiplier;
  w.timed_trace_label_timestamp = o.timed_trace_label_timestamp;
  w.timed_trace_label_input_length = o.timed_trace_label_input_length;
  w.timed_trace_label_output_length = o.timed_trace_label_output_length;
  w.timed_trace_label_hash_ids = o.timed_trace_label_hash_ids;
  workload::set_common_lengths(w, o.input_len, o.output_len);
  return w;
}

bool uses_trace_times(const BenchServeOptions& o, const FlagSet::Parsed& parsed) {
  return o.self_timed && !parsed.was_given("request-rate") && !o.max_concurrency && o.stages.empty();
}

/// Which law the flags ask for, given whether the data set has instants of its own.
Result<workload::ArrivalOptions> arrival_options(const BenchServeOptions& o, const FlagSet::Parsed& parsed,
                                                 const workload::RequestSource& source, std::uint64_t seed) {
  workload::ArrivalOptions a;
  a.seed = seed;
  a.rate = o.request_rate;
  a.burstiness = o.burstiness;
  a.speedup = o.speedup;
  if (!o.duration.empty()) a.duration = parse_duration(o.duration);
  if (o.duration.empty() || parsed.was_given("num-prompts")) a.count = source.planned();
  if (!o.stages.empty()) {
    a.kind = workload::ArrivalKind::stages;
    TS_TRY(a.stages, workload::parse_stages(o.stages));
    a.count.reset();
  } else if (!source.arrivals().empty() && uses_trace_times(o, parsed)) {
    a.kind = workload::ArrivalKind::trace;
    a.trace.assign(source.arrivals().begin(), source.arrivals().end());
    a.count = std::min<std::uint64_t>(source.planned(), a.trace.size());
  } else if (std::isinf(o.request_rate) && o.max_concurrency) {
    a.kind = workload::ArrivalKind::closed_loop;
  } else {
    a.kind = workload::arrival_kind(o.request_rate, o.burstiness);
  }
  TS_TRY_STATUS(a.validate());
  return a;
}

/// The end of the stage that each instant lies in.
std::vector<TimeNs> stage_ends(const std::vector<TimeNs>& instants, const std::vector<workload::Stage>& stages) {
  std::vector<TimeNs> ends;
  std::size_t stage = 0;
  TimeNs end = stages.empty() ? kNever : stages[0].length;
  for (const TimeNs t : instants) {
    while (t >= end && stage + 1 < stages.size()) end += stages[++stage].length;
    ends.push_back(end);
  }
  return ends;
}

TimeNs total_length(const std::vector<workload::Stage>& stages) {
  TimeNs total = 0;
  for (const workload::Stage& stage : stages) total += stage.length;
  return total;
}

loadgen::PacerOptions pacer_options(const BenchServeOptions& o, const workload::ArrivalOptions& arrivals,
                                    const std::vector<TimeNs>& instants) {
  loadgen::PacerOptions p;
  if (o.max_concurrency) p.max_concurrency = static_cast<std::uint32_t>(*o.max_concurrency);
  if (arrivals.duration) p.stop_at = *arrivals.duration;
  if (arrivals.kind == workload::ArrivalKind::closed_loop) {
    p.closed_loop = true;
    p.total = arrivals.count.value_or(UINT64_MAX);
    return p;
  }
  p.intended = instants;
  if (arrivals.kind == workload::ArrivalKind::stages) {
    p.expires = stage_ends(instants, arrivals.stages);
    p.stop_at = total_length(arrivals.stages);
  }
  return p;
}

Result<std::vector<double>> percentiles(const std::string& list) {
  std::vector<double> values;
  for (const std::string_view word : split(list, ',')) {
    const auto value = parse_double(trim(word));
    if (!value || !(*value > 0) || *value > 100)
      return usage_error(fmt::format("--metric-percentiles takes percentages such as 50,90,99.9, not '{}'", word),
                         "metric-percentiles");
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<std::string>> metric_names(const std::string& list) {
  static const std::vector<std::string> known = {"ttft", "tpot", "itl", "e2el"};
  std::vector<std::string> names;
  for (const std::string_view word : split(list, ',')) {
    const std::string name(trim(word));
    if (std::find(known.begin(), known.end(), name) == known.end())
      return usage_error(fmt::format("--percentile-metrics knows {}, not '{}'", join(known, ", "), name),
                         "percentile-metrics");
    names.push_back(name);
  }
  return names;
}

Result<std::vector<std::pair<std::string, std::string>>> key_values(const std::vector<std::string>& words,
                                                                    const char* flag) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0)
      return usage_error(fmt::format("--{} takes KEY=VALUE, not '{}'", flag, word), flag);
    pairs.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  return pairs;
}

/// Header values may be secrets: the plan keeps their names only.
std::vector<std::string> without_secrets(const std::vector<std::string>& argv) {
  std::vector<std::string> kept;
  bool in_headers = false;
  for (const std::string& word : argv) {
    if (word.starts_with("--")) in_headers = word.starts_with("--header");
    const std::size_t at = word.find('=', word.starts_with("--header=") ? 9 : 0);
    const bool value = in_headers && at != std::string::npos && word != "--header";
    kept.push_back(value ? word.substr(0, at) + "=***" : word);
  }
  return kept;
}

std::string date_text() {
  const std::time_t seconds = static_cast<std::time_t>(platform::wall_now() / kSecond);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

std::vector<std::string> deviations(const BenchServeOptions& o, std::uint32_t warmups) {
  std::vector<std::string> lines;
  if (warmups > 0 && !o.num_warmups)
    lines.push_back(
        fmt::format("--num-warmups is {} (vLLM: 0); warm-up requests are in no figure and no record", warmups));
  if (!o.ready_check_timeout_sec && o.is_http())
    lines.emplace_back("one request before the run checks that the server answers (vLLM: none)");
  return lines;
}

Result<record::RunPlan> describe(const BenchServeOptions& o, const FlagSet::Parsed& parsed,
                                 const std::vector<std::string>& argv, const PlanContext& context,
                                 const workload::ArrivalOptions& arrivals) {
  record::RunPlan p;
  p.argv = without_secrets(argv);
  p.flags = parsed.values;
  if (!o.headers.empty()) p.flags["header"] = fmt::format("{} given", o.headers.size());
  p.backend = o.backend;
  p.endpoint = context.endpoint;
  p.target_kind = context.target.kind;
  p.target_address = context.target.address;
  p.model_id = context.target.model;
  p.tokenizer_id = context.tokenizer_name;
  p.label = o.label;
  p.server_version = context.target.server.empty() ? "unknown" : context.target.server;
  TS_TRY(p.metadata, key_values(o.metadata, "metadata"));
  // 0: the schedule has instants or rates of its own.
  const bool own_times =
      arrivals.kind == workload::ArrivalKind::trace || arrivals.kind == workload::ArrivalKind::stages;
  p.request_rate = own_times ? 0.0 : o.request_rate;
  p.burstiness = o.burstiness;
  if (o.max_concurrency) p.max_concurrency = static_cast<std::uint32_t>(*o.max_concurrency);
  p.duration = arrivals.duration;
  if (!arrivals.stages.empty()) p.duration = total_length(arrivals.stages);
  for (const workload::Stage& stage : arrivals.stages) p.stages.emplace_back(stage.rate, stage.length);
  p.num_warmups = static_cast<std::uint32_t>(o.num_warmups.value_or(context.target.virtual_time ? 0 : 8));
  p.ignore_eos = o.ignore_eos;
  TS_TRY(p.goodput, judge::parse_goodput(o.goodput));
  if (!o.slo.empty()) {
    TS_TRY(p.slo, judge::parse_slo(o.slo));
  }
  TS_TRY(p.percentile_metrics, metric_names(o.percentile_metrics));
  TS_TRY(p.metric_percentiles, percentiles(o.metric_percentiles));
  p.save_detailed = o.save_detailed;
  p.virtual_time = context.target.virtual_time;
  p.deviations = deviations(o, p.num_warmups);
  p.notes = parsed.notes;
  p.environment = platform::probe_environment();
  p.date = date_text();
  p.tool_version = kVersion;
  return p;
}

/// Exit 1 with both numbers, before anything is sent.
Status check_lengths(const std::vector<record::RequestSpec>& requests, std::optional<std::int64_t> max_model_len) {
  if (!max_model_len) return {};
  for (const record::RequestSpec& r : requests) {
    if (r.prompt_len < 0 || r.prompt_len + r.output_len <= *max_model_len) continue;
    return usage_error(
        fmt::format("request {} needs {} tokens ({} prompt + {} output), the model's max_model_len is {}; shorten the "
                    "lengths or give --scale",
                    r.index, r.prompt_len + r.output_len, r.prompt_len, r.output_len, *max_model_len));
  }
  return {};
}

void apply_sampling(const BenchServeOptions& o, record::RequestSpec& spec) {
  spec.sampling.max_tokens = static_cast<std::int32_t>(spec.output_len);
  spec.sampling.ignore_eos = o.ignore_eos;
  spec.sampling.temperature = o.temperature.value_or(1.0);
  spec.sampling.top_p = o.top_p.value_or(1.0);
  spec.sampling.top_k = static_cast<std::int32_t>(o.top_k.value_or(0));
  spec.sampling.min_p = o.min_p.value_or(0.0);
}

}  // namespace

Result<PlannedLoad> plan_load(const BenchServeOptions& o, const FlagSet::Parsed& parsed,
                              const std::vector<std::string>& argv, const PlanContext& context, std::int64_t run) {
  const auto seed = static_cast<std::uint64_t>(o.seed + run);
  workload::WorkloadOptions w = workload_options(o, context, seed);
  w.keep_trace_times = uses_trace_times(o, parsed);
  PlannedLoad load;
  TS_TRY(load.source, workload::make_source(w, context.tokenizer));
  TS_TRY(const workload::ArrivalOptions arrivals, arrival_options(o, parsed, *load.source, seed));
  const std::vector<TimeNs> instants = workload::make_arrivals(arrivals);
  if (instants.empty() && arrivals.kind != workload::ArrivalKind::closed_loop)
    return usage_error(
        "the schedule is empty: no request falls into the duration; give a longer --duration or a higher "
        "--request-rate");
  load.requests = workload::make_plan(*load.source, instants);
  for (record::RequestSpec& spec : load.requests) apply_sampling(o, spec);
  TS_TRY_STATUS(check_lengths(load.requests, context.target.max_model_len));
  load.pacer = pacer_options(o, arrivals, instants);
  if (load.pacer.stop_at != kNever)
    load.expected = load.pacer.stop_at;
  else if (!load.pacer.closed_loop && instants.back() > 0)
    load.expected = instants.back();
  TS_TRY(load.plan, describe(o, parsed, argv, context, arrivals));
  load.plan.seed = seed;
  load.plan.num_prompts = load.requests.size();
  load.plan.dataset = load.source->info();
  load.plan.plan_hash = fmt::format("{:016x}", workload::plan_hash(load.requests)).substr(0, 8);
  return load;
}

std::string schedule_text(const PlannedLoad& load) {
  std::int64_t input = 0, output = 0;
  for (const record::RequestSpec& r : load.requests) {
    input += std::max<std::int64_t>(0, r.prompt_len);
    output += r.output_len;
  }
  std::string out =
      fmt::format("schedule  {} requests, plan {}, seed {}, nothing sent\n",
                  format_count(static_cast<std::int64_t>(load.requests.size())), load.plan.plan_hash, load.plan.seed);
  out += fmt::format("tokens    input {}, output {} asked\n", format_count(input), format_count(output));
  if (load.expected) out += fmt::format("length    {} s\n", format_figure(to_seconds(*load.expected)));
  for (const std::string& note : load.plan.dataset.notes) out += fmt::format("note      {}\n", note);
  out += fmt::format("\n{:>8} {:>12}  {:<12} {:>8} {:>8}\n", "index", "at s", "class", "prompt", "output");
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < std::min(shown, load.requests.size()); ++i) {
    const record::RequestSpec& r = load.requests[i];
    const std::string at = r.intended == kUnknownTime ? "free slot" : fmt::format("{:.6f}", to_seconds(r.intended));
    out += fmt::format("{:>8} {:>12}  {:<12} {:>8} {:>8}\n", r.index, at, r.class_name.substr(0, 12), r.prompt_len,
                       r.output_len);
  }
  if (load.requests.size() > shown)
    out += fmt::format("{:>8} {} more; --json - prints all\n", "...", load.requests.size() - shown);
  return out;
}

std::string schedule_json(const PlannedLoad& load) {
  nlohmann::ordered_json out = {{"plan", nlohmann::ordered_json::parse(record::plan_to_json(load.plan))},
                                {"requests", nlohmann::ordered_json::array()}};
  for (const record::RequestSpec& r : load.requests) {
    out["requests"].push_back(
        {{"index", r.index},
         {"request_id", r.request_id},
         {"class", r.class_name},
         {"intended", r.intended == kUnknownTime ? nlohmann::ordered_json() : nlohmann::ordered_json(r.intended)},
         {"prompt_len", r.prompt_len},
         {"output_len", r.output_len}});
  }
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tokenstone::app
