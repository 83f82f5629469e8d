#include "record/request_csv.h"

#include "record/csv.h"
#include "record/csv_table.h"

namespace tokenstone::record {
namespace {

constexpr std::string_view kColumns[] = {"request_id",
                                         "class",
                                         "session",
                                         "intended",
                                         "sent",
                                         "first_byte",
                                         "first_token",
                                         "last_token",
                                         "finished",
                                         "prompt_len",
                                         "cached_tokens",
                                         "output_len",
                                         "output_len_source",
                                         "finish_reason",
                                         "error_class",
                                         "http_status",
                                         "text_bytes",
                                         "arrival_time",
                                         "scheduled_prefill_time",
                                         "prefill_end",
                                         "chunks",
                                         "preemptions"};

std::string header() {
  CsvLine line;
  for (const std::string_view column : kColumns) line.text(column);
  return line.end();
}

Result<RequestRecord> read_row(CsvTable& table) {
  const auto time = [&](std::string_view column) { return table.number(column).value_or(kUnknownTime); };
  const auto count = [&](std::string_view column) { return table.number(column).value_or(-1); };
  RequestRecord r;
  r.request_id = table.text("request_id");
  r.class_name = table.text("class");
  r.session = table.text("session");
  r.intended = time("intended");
  r.sent = time("sent");
  r.first_byte = time("first_byte");
  r.first_token = time("first_token");
  r.last_token = time("last_token");
  r.finished = time("finished");
  r.prompt_len = count("prompt_len");
  r.cached_tokens = count("cached_tokens");
  r.output_len = count("output_len");
  if (!from_string(table.text("output_len_source"), r.output_len_source))
    return table.wrong("output_len_source", "usage, tokenizer, events, engine or nothing");
  r.finish_reason = table.text("finish_reason");
  if (!from_string(table.text("error_class"), r.error_class))
    return table.wrong("error_class", "a known class of error");
  r.http_status = static_cast<int>(table.number("http_status").value_or(0));
  r.text_bytes = static_cast<std::uint64_t>(table.number("text_bytes").value_or(0));
  r.arrival_time = time("arrival_time");
  r.scheduled_prefill_time = time("scheduled_prefill_time");
  r.prefill_end = time("prefill_end");
  r.chunks = static_cast<std::int32_t>(count("chunks"));
  r.preemptions = static_cast<std::int32_t>(count("preemptions"));
  return r;
}

}  // namespace

std::span<const std::string_view> request_columns() { return kColumns; }

std::string request_csv_line(const RequestRecord& r) {
  CsvLine line;
  line.text(r.request_id).text(r.class_name).text(r.session);
  line.time(r.intended).time(r.sent).time(r.first_byte).time(r.first_token).time(r.last_token).time(r.finished);
  line.count(r.prompt_len).count(r.cached_tokens).count(r.output_len).text(to_string(r.output_len_source));
  line.text(r.finish_reason).text(to_string(r.error_class)).count(r.http_status > 0 ? r.http_status : -1);
  line.number(static_cast<std::int64_t>(r.text_bytes));
  line.time(r.arrival_time).time(r.scheduled_prefill_time).time(r.prefill_end).count(r.chunks).count(r.preemptions);
  return line.end();
}

Result<RequestCsvWriter> RequestCsvWriter::create(const std::string& path) {
  TS_TRY(AppendFile file, AppendFile::create(path));
  file.append(header());
  TS_TRY_STATUS(file.flush());
  return RequestCsvWriter(std::move(file));
}

void RequestCsvWriter::write(const RequestRecord& request) { file_.append(request_csv_line(request)); }

Result<std::vector<RequestRecord>> parse_requests_csv(std::string_view text, const std::string& path) {
  TS_TRY(CsvTable table, CsvTable::open(text, path, kColumns));
  std::vector<RequestRecord> requests;
  while (table.next()) {
    TS_TRY(RequestRecord request, read_row(table));
    requests.push_back(std::move(request));
  }
  TS_TRY_STATUS(table.status());
  return requests;
}

Result<std::vector<RequestRecord>> read_requests_csv(const std::string& path) {
  TS_TRY(const std::string text, read_whole_file(path));
  return parse_requests_csv(text, path);
}

}  // namespace tokenstone::record
