// ShareGPT's format: a JSON list of conversations. The first turn is the prompt, the second gives the output length.
//
//   [{"id": "a", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi, how ..."}]}]
//
// The filter is vLLM's: 4 to 1024 prompt tokens, at least 4 answer tokens (unless a length is given), at most 2048 in
// all.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "workload/data_file.h"
#include "workload/text_source.h"

namespace tokenstone::workload {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLeastPrompt = 4, kMostPrompt = 1024, kLeastAnswer = 4, kMostTotal = 2048;
constexpr std::string_view kExpected = "a JSON list of {\"conversations\": [{\"from\": ..., \"value\": ...}, ...]}";

struct Turns {
  std::string prompt, answer;
};

std::expected<Turns, std::string> first_turns(const Json& entry) {
  const auto found = entry.is_object() ? entry.find("conversations") : entry.end();
  if (!entry.is_object() || found == entry.end() || !found->is_array())
    return std::unexpected("no list of conversations");
  if (found->size() < 2) return std::unexpected("fewer than two turns");
  Turns turns;
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& turn = (*found)[i];
    const auto value = turn.is_object() ? turn.find("value") : turn.end();
    if (!turn.is_object() || value == turn.end() || !value->is_string()) return std::unexpected("a turn without text");
    (i == 0 ? turns.prompt : turns.answer) = value->get<std::string>();
  }
  return turns;
}

std::expected<TextRow, std::string> usable_row(const Json& entry, const WorkloadOptions& options,
                                               const Content& content) {
  auto turns = first_turns(entry);
  if (!turns) return std::unexpected(turns.error());
  TextRow row;
  row.prompt_len = content.prompt_tokens(turns->prompt);
  row.output_len = options.sharegpt_output_len ? *options.sharegpt_output_len : content.answer_tokens(turns->answer);
  row.text = std::move(turns->prompt);
  if (row.prompt_len < kLeastPrompt) return std::unexpected(fmt::format("prompt under {} tokens", kLeastPrompt));
  if (row.prompt_len > kMostPrompt) return std::unexpected(fmt::format("prompt over {} tokens", kMostPrompt));
  if (!options.sharegpt_output_len && row.output_len < kLeastAnswer)
    return std::unexpected(fmt::format("answer under {} tokens", kLeastAnswer));
  if (row.prompt_len + row.output_len > kMostTotal)
    return std::unexpected(fmt::format("over {} tokens in all", kMostTotal));
  return row;
}

Result<Json> read_list(const WorkloadOptions& options) {
  TS_TRY(const std::string text, read_data_file(options.dataset_path));
  Json list = Json::parse(text.begin(), text.end(), nullptr, false);
  if (list.is_array() && !list.empty()) return list;
  const std::string_view found = list.is_discarded() ? "not valid JSON"
                                 : list.is_array()   ? "an empty list"
                                                     : "JSON of another form";
  return usage_error(fmt::format("{}: expected {}, found {}{}", options.dataset_path, kExpected, found,
                                 other_kind_hint(options.dataset_path, "sharegpt")),
                     "--dataset-path");
}

}  // namespace

SourceResult sharegpt_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY(const Json list, read_list(options));
  RowAccount account;
  std::vector<TextRow> rows;
  for (const std::uint32_t number : row_order(list.size(), options)) {
    if (options.num_prompts > 0 && rows.size() == options.num_prompts) break;
    auto row = usable_row(list[number], options, *content);
    if (!row) {
      account.drop(row.error(), 0);
      continue;
    }
    account.use();
    rows.push_back(std::move(*row));
  }
  if (rows.empty()) return account.nothing_usable(options.dataset_path, kExpected);
  record::DatasetInfo info;
  info.name = "sharegpt";
  info.path = options.dataset_path;
  account.report(info);
  if (account.rows() < list.size())
    info.notes.push_back(fmt::format("{} of {} conversations looked at", account.rows(), list.size()));
  return text_source(options, std::move(content), std::move(rows), std::move(info));
}

}  // namespace tokenstone::workload
