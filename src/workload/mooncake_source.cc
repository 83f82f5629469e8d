// Mooncake's traces: recorded times and lengths, and hash_ids that say which blocks of prompts are the same.
//
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//
// Each hash id stands for a block of the prompt (512 tokens in Mooncake's files, 16 elsewhere). A block's content is a
// function of its hash id and the seed, so rows with the same leading ids have the same leading tokens.
// A scale makes a block round(512 x scale) tokens, and a prompt of k whole blocks and a rest becomes k such blocks and
// the scaled rest: hash ids stay aligned with blocks, so what was shared stays shared. Example, scale 0.1: 6758 tokens
// = 13 x 512 + 102 -> 13 x 51 + 10 = 673.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "workload/data_file.h"
#include "workload/lengths.h"
#include "workload/trace_source.h"

namespace tokenstone::workload {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kChunks[] = {512, 16, 32, 64, 128, 256, 1024};  // in the order in which ties are decided
constexpr double kSecondsGap =
    20;  // a mean gap above it is taken for milliseconds: no service waits 20 s for each request
constexpr double kLongestSpan = 1e9;  // seconds

struct MooncakeRow {
  double time = 0;
  std::int64_t input = 0, output = 0;
  std::vector<std::uint64_t> hashes;
  std::uint32_t line = 0;
};
using ParsedRow = std::expected<MooncakeRow, std::string>;
/// A line of the file: the row, or why it cannot be used.
struct Entry {
  std::uint32_t line = 0;
  ParsedRow row;
};

// Numbers, or strings that hold one.
std::optional<double> number_of(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  return found->is_string() ? parse_double(trim(found->get_ref<const std::string&>())) : std::nullopt;
}

std::uint64_t hash_of_text(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::optional<std::vector<std::uint64_t>> hashes_of(const Json& row, const std::string& key) {
  std::vector<std::uint64_t> hashes;
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return hashes;
  if (!found->is_array()) return std::nullopt;
  for (const Json& hash : *found) {
    if (hash.is_string()) {
      hashes.push_back(hash_of_text(hash.get_ref<const std::string&>()));
    } else if (hash.is_number_integer()) {
      hashes.push_back(hash.is_number_unsigned() ? hash.get<std::uint64_t>()
                                                 : static_cast<std::uint64_t>(hash.get<std::int64_t>()));
    } else {
      return std::nullopt;
    }
  }
  return hashes;
}

bool is_count(const std::optional<double>& value) {
  return value && *value >= 1 && *value <= static_cast<double>(kLongestLength) && *value == std::floor(*value);
}

ParsedRow parse_row(std::string_view line, std::uint32_t number, const WorkloadOptions& options) {
  const Json row = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!row.is_object()) return std::unexpected("not a JSON object");
  const auto time = number_of(row, options.timed_trace_label_timestamp);
  if (!time || !std::isfinite(*time)) return std::unexpected("no " + options.timed_trace_label_timestamp);
  const auto input = number_of(row, options.timed_trace_label_input_length);
  const auto output = number_of(row, options.timed_trace_label_output_length);
  if (!is_count(input)) return std::unexpected(options.timed_trace_label_input_length + " is not a count above 0");
  if (!is_count(output)) return std::unexpected(options.timed_trace_label_output_length + " is not a count above 0");
  auto hashes = hashes_of(row, options.timed_trace_label_hash_ids);
  if (!hashes) return std::unexpected(options.timed_trace_label_hash_ids + " is not a list of ids");
  return MooncakeRow{*time, static_cast<std::int64_t>(*input), static_cast<std::int64_t>(*output), std::move(*hashes),
                     number};
}

std::int64_t blocks_of(std::int64_t length, std::int64_t chunk) { return (length + chunk - 1) / chunk; }

// The chunk size for which most rows have exactly as many hash ids as blocks.
std::int64_t guess_chunk(const std::vector<Entry>& entries) {
  std::int64_t best = kChunks[0];
  std::size_t best_rows = 0;
  for (const std::int64_t chunk : kChunks) {
    std::size_t fitting = 0;
    for (const Entry& entry : entries) {
      const auto hashes = entry.row ? static_cast<std::int64_t>(entry.row->hashes.size()) : 0;
      fitting += hashes > 0 && hashes == blocks_of(entry.row->input, chunk) ? 1 : 0;
    }
    if (fitting > best_rows) {
      best = chunk;
      best_rows = fitting;
    }
  }
  return best;
}

struct TimeUnit {
  double seconds = 1;
  std::string text;
};

TimeUnit guess_unit(const std::vector<MooncakeRow>& rows) {
  double first = rows.front().time, last = first;
  bool whole = true;
  for (const MooncakeRow& row : rows) {
    first = std::min(first, row.time);
    last = std::max(last, row.time);
    whole = whole && row.time == std::floor(row.time);
  }
  if (!whole) return {1, "seconds (guessed: stamps have fractions)"};
  if (last == first) return {0.001, "milliseconds (guessed: as in Mooncake's files)"};
  const double gap = (last - first) / static_cast<double>(rows.size() - 1);
  if (gap > kSecondsGap) return {0.001, fmt::format("milliseconds (guessed: the mean gap is {:.3g} units)", gap)};
  return {1, fmt::format("seconds (guessed: the mean gap is {:.3g} units)", gap)};
}

TimeUnit unit_of(const std::vector<MooncakeRow>& rows, const WorkloadOptions& options) {
  if (!options.timed_trace_sec_multiplier) return guess_unit(rows);
  return {*options.timed_trace_sec_multiplier, fmt::format("units of {} s", *options.timed_trace_sec_multiplier)};
}

std::int64_t scaled_length(std::int64_t length, std::int64_t chunk, std::int64_t block, double scale) {
  const std::int64_t rest = length % chunk;
  return length / chunk * block + (rest > 0 ? std::min(block, scaled(rest, scale)) : 0);
}

std::vector<Entry> read_entries(std::string_view text, const WorkloadOptions& options) {
  std::vector<Entry> entries;
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    entries.push_back({number, parse_row(line, number, options)});
    return true;
  });
  return entries;
}

// The first rows, as many as are asked for, that are rows and have no more hashes than blocks.
std::vector<MooncakeRow> usable_rows(std::vector<Entry> entries, std::int64_t chunk, std::uint64_t most,
                                     RowAccount& account) {
  std::vector<MooncakeRow> rows;
  for (Entry& entry : entries) {
    if (most > 0 && rows.size() == most) break;
    if (!entry.row) {
      account.drop(entry.row.error(), entry.line);
    } else if (static_cast<std::int64_t>(entry.row->hashes.size()) > blocks_of(entry.row->input, chunk)) {
      account.drop(fmt::format("more hash ids than blocks of {} tokens", chunk), entry.line);
    } else {
      account.use();
      rows.push_back(std::move(*entry.row));
    }
  }
  return rows;
}

Trace to_trace(std::vector<MooncakeRow> rows, const WorkloadOptions& options, std::int64_t chunk,
               const TimeUnit& unit) {
  Trace trace;
  trace.name = "mooncake";
  trace.block = scaled(chunk, options.scale);
  double first = rows.front().time;
  for (const MooncakeRow& row : rows) first = std::min(first, row.time);
  for (MooncakeRow& row : rows) {
    trace.times.push_back(from_seconds((row.time - first) * unit.seconds));
    trace.rows.push_back({scaled_length(row.input, chunk, trace.block, options.scale),
                          scaled(row.output, options.scale), std::move(row.hashes)});
  }
  return trace;
}

std::string expected_rows(const WorkloadOptions& options) {
  return fmt::format("rows such as {{\"{}\": 0, \"{}\": 1000, \"{}\": 50, \"{}\": [1, 2]}}{}",
                     options.timed_trace_label_timestamp, options.timed_trace_label_input_length,
                     options.timed_trace_label_output_length, options.timed_trace_label_hash_ids,
                     other_kind_hint(options.dataset_path, "mooncake"));
}

Status check_span(const std::vector<MooncakeRow>& rows, double unit_seconds, const std::string& path) {
  for (const MooncakeRow& row : rows)
    if (std::abs(row.time - rows.front().time) * unit_seconds > kLongestSpan)
      return usage_error(fmt::format("{}: the time stamps of lines {} and {} lie more than 30 years apart; check "
                                     "--timed-trace-sec-multiplier",
                                     path, rows.front().line, row.line),
                         "--timed-trace-sec-multiplier");
  return {};
}

}  // namespace

SourceResult mooncake_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY(const std::string text, read_data_file(options.dataset_path));
  RowAccount account;
  std::vector<Entry> entries = read_entries(text, options);
  const std::int64_t chunk =
      options.timed_trace_chunk_hash_size ? *options.timed_trace_chunk_hash_size : guess_chunk(entries);
  std::vector<MooncakeRow> rows = usable_rows(std::move(entries), chunk, options.num_prompts, account);
  if (rows.empty()) return account.nothing_usable(options.dataset_path, expected_rows(options));
  const TimeUnit unit = unit_of(rows, options);
  TS_TRY_STATUS(check_span(rows, unit.seconds, options.dataset_path));
  Trace trace = to_trace(std::move(rows), options, chunk, unit);
  trace.info.name = "mooncake";
  trace.info.path = options.dataset_path;
  account.report(trace.info);
  trace.info.notes.push_back(fmt::format("time stamps taken as {}; --timed-trace-sec-multiplier sets it", unit.text));
  trace.info.notes.push_back(fmt::format(
      "{} tokens per hash id{}; blocks of {} tokens after scaling", chunk,
      options.timed_trace_chunk_hash_size ? "" : " (guessed; --timed-trace-chunk-hash-size sets it)", trace.block));
  return trace_source(options, std::move(content), std::move(trace));
}

}  // namespace tokenstone::workload
