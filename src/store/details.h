// details.jsonl and run.json: what a RunResult holds beyond plan.json, requests.csv, events.bin and steps.csv. Private
// to store.
//
// details.jsonl has one object a line, in the order of completion: the request's place in the plan, its planned
// lengths, its text and error. run.json has the window, the phases, the client's own error and how the run ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/run.h"

namespace tokenstone::store {

std::string detail_line(const record::RequestRecord& request);
/// Adds line i of the text to requests[i] (both in order of completion); a torn last line ends it. Gives how many had
/// one.
Result<std::size_t> add_details(std::string_view text, const std::string& path,
                                std::vector<record::RequestRecord>& requests);

std::string ending_to_json(const record::RunResult& run);
/// Gives the number of planned requests.
Result<std::uint64_t> ending_from_json(std::string_view text, const std::string& path, record::RunResult& run);

}  // namespace tokenstone::store
