#include "store/details.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace tokenstone::store {
namespace {

using Json = nlohmann::ordered_json;
using record::RequestRecord;
using record::RunResult;

Json time(TimeNs t) { return t == kUnknownTime ? Json(nullptr) : Json(t); }
TimeNs to_time(const Json& json) { return json.is_null() ? kUnknownTime : json.get<TimeNs>(); }
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

void read_detail(const Json& j, RequestRecord& r) {
  j.at("index").get_to(r.index);
  j.at("planned_prompt_len").get_to(r.planned_prompt_len);
  j.at("planned_output_len").get_to(r.planned_output_len);
  j.at("usage_output_len").get_to(r.usage_output_len);
  j.at("event_count").get_to(r.event_count);
  r.connect_ns = to_time(j.at("connect_ns"));
  j.at("prompt_len_nominal").get_to(r.prompt_len_nominal);
  j.at("missing_done").get_to(r.missing_done);
  j.at("text").get_to(r.text);
  j.at("error").get_to(r.error);
}

Json audit_json(const record::ClientAudit& a) {
  return {{"send_lag", a.send_lag},
          {"loop_stall_max", a.loop_stall_max},
          {"cpu_share", a.cpu_share},
          {"max_in_flight", a.max_in_flight},
          {"mean_in_flight", a.mean_in_flight},
          {"kernel_stamps", a.kernel_stamps},
          {"stamp_uncertainty", time(a.stamp_uncertainty)},
          {"waited_for_slot", a.waited_for_slot},
          {"slot_wait_max", a.slot_wait_max}};
}

void read_audit(const Json& j, record::ClientAudit& a) {
  j.at("send_lag").get_to(a.send_lag);
  j.at("loop_stall_max").get_to(a.loop_stall_max);
  j.at("cpu_share").get_to(a.cpu_share);
  j.at("max_in_flight").get_to(a.max_in_flight);
  j.at("mean_in_flight").get_to(a.mean_in_flight);
  j.at("kernel_stamps").get_to(a.kernel_stamps);
  a.stamp_uncertainty = to_time(j.at("stamp_uncertainty"));
  j.at("waited_for_slot").get_to(a.waited_for_slot);
  j.at("slot_wait_max").get_to(a.slot_wait_max);
}

}  // namespace

std::string detail_line(const RequestRecord& r) {
  return line({{"index", r.index},
               {"request_id", r.request_id},
               {"planned_prompt_len", r.planned_prompt_len},
               {"planned_output_len", r.planned_output_len},
               {"usage_output_len", r.usage_output_len},
               {"event_count", r.event_count},
               {"connect_ns", time(r.connect_ns)},
               {"prompt_len_nominal", r.prompt_len_nominal},
               {"missing_done", r.missing_done},
               {"text", r.text},
               {"error", r.error}});
}

Result<std::size_t> add_details(std::string_view text, const std::string& path, std::vector<RequestRecord>& requests) {
  std::size_t n = 0;
  while (n < requests.size()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return n;  // a torn line, or none
    try {
      read_detail(Json::parse(text.substr(0, end)), requests[n]);
    } catch (const Json::exception& error) {
      return usage_error(fmt::format("{}:{}: expected a request's details: {}", path, n + 1, error.what()));
    }
    text.remove_prefix(end + 1);
    ++n;
  }
  return n;
}

std::string ending_to_json(const RunResult& run) {
  Json phases = Json::array();
  for (const auto& [name, length] : run.phases) phases.push_back({{"name", name}, {"length_ns", length}});
  return line({{"version", 1},
               {"planned", run.requests.size()},
               {"window_start", run.window_start},
               {"window_end", run.window_end},
               {"phases", phases},
               {"interrupted", run.interrupted},
               {"interruption", run.interruption},
               {"server_died", run.server_died},
               {"engine_blocks", run.engine_blocks},
               {"engine_block_size", run.engine_block_size},
               {"audit", audit_json(run.audit)}});
}

Result<std::uint64_t> ending_from_json(std::string_view text, const std::string& path, RunResult& run) {
  try {
    const Json j = Json::parse(text);
    j.at("window_start").get_to(run.window_start);
    j.at("window_end").get_to(run.window_end);
    for (const Json& phase : j.at("phases"))
      run.phases.emplace_back(phase.at("name").get<std::string>(), phase.at("length_ns").get<TimeNs>());
    j.at("interrupted").get_to(run.interrupted);
    j.at("interruption").get_to(run.interruption);
    j.at("server_died").get_to(run.server_died);
    j.at("engine_blocks").get_to(run.engine_blocks);
    j.at("engine_block_size").get_to(run.engine_block_size);
    read_audit(j.at("audit"), run.audit);
    return j.at("planned").get<std::uint64_t>();
  } catch (const Json::exception& error) {
    return usage_error(fmt::format("{}: expected a run's ending as tokenstone writes it: {}", path, error.what()));
  }
}

}  // namespace tokenstone::store
