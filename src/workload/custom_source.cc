// A person's own prompts, one JSON object a line: {"prompt": "text" or [token ids], "output_tokens": 12}.
// The output length is --custom-output-len; -1 takes each row's output_tokens.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "workload/data_file.h"
#include "workload/text_source.h"

namespace tokenstone::workload {
namespace {

using Json = nlohmann::json;

std::optional<std::vector<TokenId>> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer()) return std::nullopt;
    const auto value = id.get<std::int64_t>();
    if (value < 0 || value > INT32_MAX) return std::nullopt;
    ids.push_back(static_cast<TokenId>(value));
  }
  return ids.empty() ? std::nullopt : std::optional(std::move(ids));
}

std::expected<std::int64_t, std::string> output_of(const Json& row, std::int64_t asked) {
  if (asked != -1) return asked;
  const auto found = row.find("output_tokens");
  if (found == row.end()) return std::unexpected("no output_tokens");
  if (!found->is_number_integer() || found->get<std::int64_t>() < 1 || found->get<std::int64_t>() > INT32_MAX)
    return std::unexpected("output_tokens is not a count above 0");
  return found->get<std::int64_t>();
}

std::expected<TextRow, std::string> parse_row(std::string_view line, std::int64_t asked_output, PromptForm form) {
  Json parsed = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!parsed.is_object()) return std::unexpected("not a JSON object");
  const auto prompt = parsed.find("prompt");
  if (prompt == parsed.end()) return std::unexpected("no prompt");
  TextRow row;
  if (prompt->is_string() && !prompt->get_ref<const std::string&>().empty()) {
    row.text = prompt->get<std::string>();
  } else if (auto ids = prompt->is_array() ? ids_of(*prompt) : std::nullopt) {
    if (form == PromptForm::chat) return std::unexpected("token ids cannot be sent as a chat message");
    row.ids = std::move(*ids);
  } else {
    return std::unexpected("prompt is neither text nor token ids");
  }
  auto output = output_of(parsed, asked_output);
  if (!output) return std::unexpected(output.error());
  row.output_len = *output;
  return row;
}

}  // namespace

SourceResult custom_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY(const std::string text, read_data_file(options.dataset_path));
  RowAccount account;
  std::vector<TextRow> all;
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    auto row = parse_row(line, options.custom_output_len, options.form);
    if (row) {
      account.use();
      all.push_back(std::move(*row));
    } else {
      account.drop(row.error(), number);
    }
    return true;
  });
  if (all.empty())
    return account.nothing_usable(options.dataset_path, "lines such as {\"prompt\": \"Hello\", \"output_tokens\": 12}" +
                                                            other_kind_hint(options.dataset_path, "custom"));
  std::vector<TextRow> rows;
  for (const std::uint32_t number : row_order(all.size(), options)) {
    if (options.num_prompts > 0 && rows.size() == options.num_prompts) break;
    rows.push_back(std::move(all[number]));
    TextRow& row = rows.back();
    row.prompt_len = row.ids.empty() ? content->prompt_tokens(row.text) : static_cast<std::int64_t>(row.ids.size());
  }
  record::DatasetInfo info;
  info.name = "custom";
  info.path = options.dataset_path;
  account.report(info);
  info.used = rows.size();
  return text_source(options, std::move(content), std::move(rows), std::move(info));
}

}  // namespace tokenstone::workload
