#include "store/run_folder.h"

#include <filesystem>

#include <fmt/format.h>

#include "record/csv.h"
#include "record/plan_json.h"
#include "store/details.h"

namespace tokenstone::store {
namespace {

namespace fs = std::filesystem;
using record::RunResult;

Result<std::string> make_named(const std::string& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_directory(dir, error))
    return usage_error(fmt::format("--run-dir {}: expected a folder, found a file; name another", dir));
  if (fs::is_directory(dir, error) && !fs::is_empty(dir, error))
    return usage_error(
        fmt::format("--run-dir {}: the folder is not empty; name a new one, old runs are not overwritten", dir));
  fs::create_directories(dir, error);
  if (error)
    return usage_error(
        fmt::format("--run-dir {}: cannot make the folder: {}; name one that can be written", dir, error.message()));
  return dir;
}

/// The first free number. Making a folder fails when another run has just made it, so two runs never share one.
Result<std::string> make_numbered(const std::string& root) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error)
    return usage_error(
        fmt::format("cannot make the folder {}: {}; name another with --run-dir", root, error.message()));
  std::uint32_t last = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= 9 && name.find_first_not_of("0123456789") == std::string::npos)
      last = std::max(last, static_cast<std::uint32_t>(std::stoul(name)));
  }
  for (std::uint32_t number = last + 1;; ++number) {
    const std::string dir = fmt::format("{}/{:04}", root, number);
    if (fs::create_directory(dir, error)) return dir;
    if (error)
      return usage_error(
          fmt::format("cannot make the folder {}: {}; name another with --run-dir", dir, error.message()));
  }
}

/// Places of the plan that have no record yet become unsent requests.
Result<std::vector<record::RequestRecord>> in_planned_order(std::vector<record::RequestRecord> ended,
                                                            std::uint64_t planned) {
  constexpr std::uint64_t kMostRequests = 100'000'000;
  std::uint64_t size = planned;
  for (const auto& r : ended) size = std::max<std::uint64_t>(size, r.index + 1ULL);
  if (size > kMostRequests)
    return usage_error(fmt::format("details.jsonl: expected at most {} requests, found place {}; the folder is damaged",
                                   kMostRequests, size));
  std::vector<record::RequestRecord> all(size);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].index = static_cast<std::uint32_t>(i);
  for (auto& r : ended) {
    const std::uint32_t index = r.index;
    all[index] = std::move(r);
  }
  return all;
}

/// By count, and for a killed run: from the first send to the last end that was kept.
void guess_window(RunResult& run) {
  TimeNs first = kNever, last = kUnknownTime;
  for (const auto& r : run.requests) {
    if (r.was_sent()) first = std::min(first, r.sent);
    last = std::max(last, r.finished);
  }
  if (first == kNever || last <= first) return;
  run.window_start = first;
  run.window_end = run.plan.duration ? std::min(last, first + *run.plan.duration) : last;
}

/// A request whose details were lost (written by another tool, or damaged) takes the lowest place that no other has.
void place_the_rest(std::vector<record::RequestRecord>& requests, std::size_t known) {
  std::vector<std::uint32_t> taken;
  for (std::size_t i = 0; i < known; ++i) taken.push_back(requests[i].index);
  std::sort(taken.begin(), taken.end());
  std::uint32_t place = 0;
  for (std::size_t i = known; i < requests.size(); ++i, ++place) {
    while (std::binary_search(taken.begin(), taken.end(), place)) ++place;
    requests[i].index = place;
  }
}

Status add_events(const std::string& path, std::vector<record::RequestRecord>& requests) {
  TS_TRY(const std::vector<record::IndexedEvent> events, record::read_events(path));
  std::unordered_map<std::uint32_t, record::RequestRecord*> by_index;
  for (auto& r : requests) by_index.emplace(r.index, &r);
  for (const record::IndexedEvent& e : events) {
    const auto found = by_index.find(e.index);
    if (found != by_index.end()) found->second->events.push_back(e.event);
  }
  return {};
}

bool has_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Status read_ending(const std::string& path, std::uint64_t& planned, RunResult& run) {
  if (!has_file(path)) {
    run.interrupted = true;
    run.interruption = "killed before its end";
    guess_window(run);
    return {};
  }
  TS_TRY(const std::string text, record::read_whole_file(path));
  TS_TRY(planned, ending_from_json(text, path, run));
  return {};
}

}  // namespace

RunFolder::RunFolder(std::string path, record::RequestCsvWriter requests, record::EventsWriter events,
                     record::AppendFile details, std::unique_ptr<record::StepCsvWriter> steps)
    : path_(std::move(path)),
      requests_(std::move(requests)),
      events_(std::move(events)),
      details_(std::move(details)),
      steps_(std::move(steps)) {}

std::string RunFolder::file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

Result<RunFolder> RunFolder::create(const std::string& dir, const record::RunPlan& plan, const std::string& root) {
  TS_TRY(const std::string path, dir.empty() ? make_numbered(root) : make_named(dir));
  TS_TRY_STATUS(record::write_file_atomically(path + "/plan.json", record::plan_to_json(plan)));
  TS_TRY(auto requests, record::RequestCsvWriter::create(path + "/requests.csv"));
  TS_TRY(auto events, record::EventsWriter::create(path + "/events.bin"));
  TS_TRY(auto details, record::AppendFile::create(path + "/details.jsonl"));
  TS_TRY(auto steps, record::StepCsvWriter::create(path + "/steps.csv"));
  return RunFolder(path, std::move(requests), std::move(events), std::move(details), std::move(steps));
}

void RunFolder::on_request(const record::RequestRecord& request) {
  events_.write(request.index, request.events);
  details_.append(detail_line(request));
  requests_.write(request);
}

// requests.csv comes last: a request that stands in it has its events and details on the disk too.
Status RunFolder::maybe_flush(TimeNs now) {
  TS_TRY_STATUS(events_.maybe_flush(now));
  TS_TRY_STATUS(details_.maybe_flush(now));
  TS_TRY_STATUS(steps_->maybe_flush(now));
  return requests_.maybe_flush(now);
}

Status RunFolder::flush() {
  TS_TRY_STATUS(events_.flush());
  TS_TRY_STATUS(details_.flush());
  TS_TRY_STATUS(steps_->flush());
  return requests_.flush();
}

Status RunFolder::finish(const RunResult& run, std::string_view result_json) {
  TS_TRY_STATUS(flush());
  TS_TRY_STATUS(record::write_file_atomically(file("run.json"), ending_to_json(run)));
  return record::write_file_atomically(file("result.json"), result_json);
}

Result<RunResult> load_run(const std::string& dir) {
  if (!has_file(dir + "/plan.json"))
    return usage_error(
        fmt::format("{}: expected a run folder with plan.json and requests.csv; see --run-dir of bench serve", dir));
  RunResult run;
  TS_TRY(const std::string plan, record::read_whole_file(dir + "/plan.json"));
  TS_TRY(run.plan, record::plan_from_json(plan, dir + "/plan.json"));
  TS_TRY(run.requests, record::read_requests_csv(dir + "/requests.csv"));
  std::size_t detailed = 0;
  if (has_file(dir + "/details.jsonl")) {
    TS_TRY(const std::string details, record::read_whole_file(dir + "/details.jsonl"));
    TS_TRY(detailed, add_details(details, dir + "/details.jsonl", run.requests));
  }
  place_the_rest(run.requests, detailed);
  if (has_file(dir + "/events.bin")) TS_TRY_STATUS(add_events(dir + "/events.bin", run.requests));
  if (has_file(dir + "/steps.csv")) {
    TS_TRY(run.steps, record::read_steps_csv(dir + "/steps.csv"));
  }
  std::uint64_t planned = run.plan.num_prompts;
  TS_TRY_STATUS(read_ending(dir + "/run.json", planned, run));
  TS_TRY(run.requests, in_planned_order(std::move(run.requests), planned));
  run.run_dir = dir;
  return run;
}

Result<std::string> events_csv(const std::string& dir) {
  TS_TRY(const RunResult run, load_run(dir));
  std::string out = "request_id,index,event,arrived,parsed,tokens,kind,shared_stamp\n";
  for (const record::RequestRecord& r : run.requests) {
    std::uint32_t n = 0;
    for (const record::TokenEvent& e : r.events) {
      record::CsvLine line;
      line.text(r.request_id).number(r.index).number(n++).time(e.arrived).time(e.parsed).count(e.tokens);
      line.text(to_string(e.kind)).number(e.shared_stamp ? 1 : 0);
      out += line.end();
    }
  }
  return out;
}

}  // namespace tokenstone::store
