#include "record/step_csv.h"

#include "record/csv.h"
#include "record/csv_table.h"

namespace tokenstone::record {
namespace {

/// One column: its name, and how its field is read and written.
struct Column {
  std::string_view name;
  std::int64_t (*get)(const StepRecord&);
  void (*set)(StepRecord&, std::int64_t);
};

#define TS_STEP_COLUMN(field)                                                              \
  Column {                                                                                 \
    #field, [](const StepRecord& s) { return static_cast<std::int64_t>(s.field); },        \
        [](StepRecord& s, std::int64_t v) { s.field = static_cast<decltype(s.field)>(v); } \
  }

constexpr Column kColumns[] = {TS_STEP_COLUMN(step_id),
                               TS_STEP_COLUMN(step_start_time),
                               TS_STEP_COLUMN(step_end_time),
                               TS_STEP_COLUMN(num_prefill_tokens),
                               TS_STEP_COLUMN(num_decode_sequences),
                               TS_STEP_COLUMN(num_batched_tokens),
                               TS_STEP_COLUMN(num_outputs),
                               TS_STEP_COLUMN(chunked),
                               TS_STEP_COLUMN(waiting_queue_len),
                               TS_STEP_COLUMN(running_queue_len),
                               TS_STEP_COLUMN(prefilling_queue_len),
                               TS_STEP_COLUMN(blocks_active),
                               TS_STEP_COLUMN(blocks_cached_idle),
                               TS_STEP_COLUMN(blocks_free),
                               TS_STEP_COLUMN(wasted_slots),
                               TS_STEP_COLUMN(allocated_slots),
                               TS_STEP_COLUMN(hit_tokens),
                               TS_STEP_COLUMN(query_tokens),
                               TS_STEP_COLUMN(evictions),
                               TS_STEP_COLUMN(preemptions),
                               TS_STEP_COLUMN(kv_blocked_requests),
                               TS_STEP_COLUMN(padded_tokens),
                               TS_STEP_COLUMN(drafted),
                               TS_STEP_COLUMN(accepted),
                               TS_STEP_COLUMN(schedule_ns),
                               TS_STEP_COLUMN(forward_ns),
                               TS_STEP_COLUMN(sampling_ns),
                               TS_STEP_COLUMN(detokenize_ns)};
#undef TS_STEP_COLUMN

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kColumns)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kColumns[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> step_columns() { return kNames; }

std::string step_csv_line(const StepRecord& step) {
  CsvLine line;
  for (const Column& column : kColumns) line.number(column.get(step));
  return line.end();
}

Result<std::unique_ptr<StepCsvWriter>> StepCsvWriter::create(const std::string& path) {
  TS_TRY(AppendFile file, AppendFile::create(path));
  CsvLine header;
  for (const std::string_view name : kNames) header.text(name);
  file.append(header.end());
  TS_TRY_STATUS(file.flush());
  return std::unique_ptr<StepCsvWriter>(new StepCsvWriter(std::move(file)));
}

void StepCsvWriter::on_step(const StepRecord& step) {
  const std::string line = step_csv_line(step);
  const std::lock_guard lock(mutex_);
  lines_ += line;
}

void StepCsvWriter::take_lines() {
  std::string lines;
  {
    const std::lock_guard lock(mutex_);
    lines.swap(lines_);
  }
  file_.append(lines);
}

Status StepCsvWriter::maybe_flush(TimeNs now) {
  take_lines();
  return file_.maybe_flush(now);
}

Status StepCsvWriter::flush() {
  take_lines();
  return file_.flush();
}

Result<std::vector<StepRecord>> parse_steps_csv(std::string_view text, const std::string& path) {
  TS_TRY(CsvTable table, CsvTable::open(text, path, kNames));
  std::vector<StepRecord> steps;
  while (table.next()) {
    StepRecord step;
    for (const Column& column : kColumns) column.set(step, table.number(column.name).value_or(0));
    steps.push_back(step);
  }
  TS_TRY_STATUS(table.status());
  return steps;
}

Result<std::vector<StepRecord>> read_steps_csv(const std::string& path) {
  TS_TRY(const std::string text, read_whole_file(path));
  return parse_steps_csv(text, path);
}

}  // namespace tokenstone::record
