#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "record/csv.h"
#include "record/events_file.h"
#include "record/plan_json.h"
#include "record/request_csv.h"
#include "record/step_csv.h"
#include "support/sample_run.h"
#include "support/shared_data.h"

namespace tokenstone::record {
namespace {

using tokenstone::testing::read_file;
using tokenstone::testing::sample_plan;
using tokenstone::testing::sample_run;
using tokenstone::testing::temporary_folder;

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ",") + std::string(name);
  return text;
}

TEST(Columns, AreSpelledAsDocumented) {
  EXPECT_EQ(joined(request_columns()),
            "request_id,class,session,intended,sent,first_byte,first_token,last_token,finished,prompt_len,cached_"
            "tokens,output_len,"
            "output_len_source,finish_reason,error_class,http_status,text_bytes,arrival_time,scheduled_prefill_time,"
            "prefill_end,chunks,"
            "preemptions");
  EXPECT_EQ(joined(step_columns()),
            "step_id,step_start_time,step_end_time,num_prefill_tokens,num_decode_sequences,num_batched_tokens,num_"
            "outputs,chunked,"
            "waiting_queue_len,running_queue_len,prefilling_queue_len,blocks_active,blocks_cached_idle,blocks_free,"
            "wasted_slots,"
            "allocated_slots,hit_tokens,query_tokens,evictions,preemptions,kv_blocked_requests,padded_tokens,drafted,"
            "accepted,schedule_ns,"
            "forward_ns,sampling_ns,detokenize_ns");
}

TEST(Enums, NamesAreTheFilesAndComeBack) {
  constexpr const char* kNames[] = {"",
                                    "refused",
                                    "connect_timeout",
                                    "first_token_timeout",
                                    "gap_timeout",
                                    "total_timeout",
                                    "reset",
                                    "http_status",
                                    "stream_error",
                                    "truncated_stream",
                                    "malformed_event",
                                    "not_event_stream",
                                    "empty_stream",
                                    "unsupported_content_encoding",
                                    "server_closed",
                                    "cancelled"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    const auto error = static_cast<ErrorClass>(i);
    EXPECT_EQ(to_string(error), kNames[i]);
    ErrorClass back = ErrorClass::refused;
    EXPECT_TRUE(from_string(kNames[i], back));
    EXPECT_EQ(back, error);
  }
  ErrorClass untouched = ErrorClass::reset;
  EXPECT_FALSE(from_string("nonsense", untouched));
  EXPECT_EQ(untouched, ErrorClass::reset);
  for (const LengthSource source : {LengthSource::unknown, LengthSource::usage, LengthSource::tokenizer,
                                    LengthSource::events, LengthSource::engine}) {
    LengthSource back = LengthSource::usage;
    EXPECT_TRUE(from_string(to_string(source), back));
    EXPECT_EQ(back, source);
  }
}

TEST(Csv, QuotesWhatNeedsIt) {  // REP-04
  CsvLine line;
  EXPECT_EQ(
      line.text("a,b").text("say \"x\"").text("two\nlines").text("plain").time(kUnknownTime).count(-1).number(-5).end(),
      "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",plain,,,-5\n");
  CsvReader reader("\xEF\xBB\xBF\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",plain,,\r\ntorn,li");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields, (std::vector<std::string>{"a,b", "say \"x\"", "two\nlines", "plain", "", ""}));
  EXPECT_FALSE(reader.torn());
  EXPECT_FALSE(reader.next(fields));
  EXPECT_TRUE(reader.torn());
}

RequestRecord full_record() {
  RequestRecord r = sample_run().requests[3];
  r.request_id = "id, with \"quote\"";
  r.class_name = "two\nlines";
  r.session = "s";
  r.cached_tokens = 16;
  r.arrival_time = 1;
  r.scheduled_prefill_time = 2;
  r.prefill_end = 3;
  r.chunks = 2;
  r.preemptions = 0;
  return r;
}

TEST(RequestsCsv, RoundTrip) {
  const std::string path = (temporary_folder() / "requests.csv").string();
  auto writer = RequestCsvWriter::create(path);
  ASSERT_TRUE(writer.has_value());
  std::vector<RequestRecord> written = {full_record(), sample_run().requests[100], RequestRecord{}};
  for (const RequestRecord& r : written) writer->write(r);
  ASSERT_TRUE(writer->flush().has_value());
  const auto read = read_requests_csv(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), written.size());
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(request_csv_line((*read)[i]), request_csv_line(written[i]));
  EXPECT_EQ((*read)[0].class_name, "two\nlines");
  EXPECT_EQ((*read)[1].error_class, ErrorClass::http_status);
  EXPECT_EQ((*read)[2].sent, kUnknownTime);
}

TEST(RequestsCsv, EveryTornEndIsTolerated) {
  std::string text = joined(request_columns()) + "\n" + request_csv_line(full_record());
  const std::size_t whole = text.size();
  text += request_csv_line(full_record());
  for (std::size_t end = whole; end < text.size(); ++end) {
    const auto read = parse_requests_csv(std::string_view(text).substr(0, end), "requests.csv");
    ASSERT_TRUE(read.has_value()) << end << ": " << read.error().message;
    EXPECT_EQ(read->size(), 1u) << end;
  }
}

TEST(RequestsCsv, WrongFieldsAreNamed) {
  const std::string header = joined(request_columns()) + "\n";
  const auto message = [](const auto& read) { return read ? std::string("no error") : read.error().message; };
  EXPECT_NE(message(parse_requests_csv(header + "r,c,s,x,,,,,,,,,,,,,,,,,,\n", "f.csv"))
                .find("f.csv:2: column 'intended': expected a whole number, found 'x'"),
            std::string::npos);
  EXPECT_NE(message(parse_requests_csv(header + "r,c,s,1,,,,,,,,,guess,,,,,,,,,\n", "f.csv")).find("output_len_source"),
            std::string::npos);
  EXPECT_NE(message(parse_requests_csv(header + "r,c\n", "f.csv")).find("expected 22 fields, found 2"),
            std::string::npos);
  EXPECT_NE(message(parse_requests_csv("a,b\n", "f.csv")).find("expected a column 'request_id'"), std::string::npos);
  EXPECT_NE(message(parse_requests_csv("", "f.csv")).find("empty"), std::string::npos);
}

TEST(RequestsCsv, ReachesTheFileByTime) {
  const std::string path = (temporary_folder() / "requests.csv").string();
  auto writer = RequestCsvWriter::create(path);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(writer->maybe_flush(0).has_value());
  writer->write(full_record());
  ASSERT_TRUE(writer->maybe_flush(kSecond / 10).has_value());
  EXPECT_EQ(read_requests_csv(path)->size(), 0u) << "not yet due";
  ASSERT_TRUE(writer->maybe_flush(kSecond).has_value());
  EXPECT_EQ(read_requests_csv(path)->size(), 1u);
}

TEST(Writers, DiskFullIsAnInterruption) {
  // /dev/full refuses every write as a full disk does. It is part of Linux; elsewhere there is nothing to test.
  if (!std::ifstream("/dev/full").good()) GTEST_SKIP() << "no /dev/full";
  auto file = AppendFile::create("/dev/full");
  ASSERT_TRUE(file.has_value());
  file->append("x");
  for (int i = 0; i < 2; ++i) {
    const Status status = file->flush();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind, ErrorKind::interrupted);
    EXPECT_NE(status.error().message.find("disk is full"), std::string::npos);
  }
  EXPECT_FALSE(RequestCsvWriter::create("/dev/full").has_value());
  EXPECT_FALSE(EventsWriter::create("/dev/full").has_value());
  EXPECT_FALSE(StepCsvWriter::create("/dev/full").has_value());
}

TEST(Writers, AFolderThatIsNotThereIsWrongUse) {
  const auto writer = RequestCsvWriter::create((temporary_folder() / "no" / "requests.csv").string());
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().kind, ErrorKind::usage);
}

TEST(Events, RoundTripAndTornEnd) {
  const std::string path = (temporary_folder() / "events.bin").string();
  auto writer = EventsWriter::create(path);
  ASSERT_TRUE(writer.has_value());
  const std::vector<TokenEvent> events = {{-5, kUnknownTime, -1, TokenKind::reasoning, true},
                                          {1'000'000'007, 1'000'000'010, 3, TokenKind::tool_call, false}};
  writer->write(4'000'000'000u, events);
  writer->write(7, {events[1]});
  ASSERT_TRUE(writer->flush().has_value());
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes.size(), 16u + 3 * 32);
  const auto read = read_events(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].index, 4'000'000'000u);
  EXPECT_EQ((*read)[0].event.arrived, -5);
  EXPECT_EQ((*read)[0].event.parsed, kUnknownTime);
  EXPECT_EQ((*read)[0].event.tokens, -1);
  EXPECT_EQ((*read)[0].event.kind, TokenKind::reasoning);
  EXPECT_TRUE((*read)[0].event.shared_stamp);
  EXPECT_EQ((*read)[1].event.arrived, 1'000'000'007);
  EXPECT_EQ((*read)[1].event.kind, TokenKind::tool_call);
  EXPECT_EQ((*read)[2].index, 7u);
  for (std::size_t end = 16; end < bytes.size(); ++end)
    EXPECT_EQ(parse_events(std::string_view(bytes).substr(0, end), "events.bin")->size(), (end - 16) / 32);
  EXPECT_FALSE(parse_events("TSEVENT0aaaaaaaa", "events.bin").has_value());
  EXPECT_FALSE(parse_events("TSEV", "events.bin").has_value());
}

TEST(Steps, RoundTrip) {
  const std::string path = (temporary_folder() / "steps.csv").string();
  auto writer = StepCsvWriter::create(path);
  ASSERT_TRUE(writer.has_value());
  const RunResult run = sample_run();
  for (const StepRecord& s : run.steps) (*writer)->on_step(s);
  ASSERT_TRUE((*writer)->flush().has_value());
  const auto read = read_steps_csv(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), run.steps.size());
  for (std::size_t i = 0; i < read->size(); ++i) EXPECT_EQ(step_csv_line((*read)[i]), step_csv_line(run.steps[i]));
  const std::string torn = read_file(path).substr(0, read_file(path).size() - 3);
  EXPECT_EQ(parse_steps_csv(torn, "steps.csv")->size(), run.steps.size() - 1);
}

TEST(Plan, RoundTrip) {
  RunPlan plan = sample_plan();
  plan.max_concurrency = 32;
  plan.duration = 30 * kSecond;
  plan.stages = {{1.5, 30 * kSecond}, {20, 10 * kSecond}};
  plan.request_rate = std::numeric_limits<double>::infinity();
  plan.save_detailed = plan.virtual_time = plan.ignore_eos = true;
  plan.notes = {"a note"};
  const std::string text = plan_to_json(plan);
  const auto back = plan_from_json(text, "plan.json");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(plan_to_json(*back), text);
  EXPECT_EQ(back->argv, plan.argv);
  EXPECT_EQ(back->stages, plan.stages);
  EXPECT_EQ(back->max_concurrency, plan.max_concurrency);
  EXPECT_EQ(back->duration, plan.duration);
  EXPECT_TRUE(std::isinf(back->request_rate));
  EXPECT_EQ(back->slo.at(0).quantile, 0.99);
  EXPECT_FALSE(back->goodput.at(0).quantile.has_value());
  EXPECT_EQ(back->dataset.dropped.at("too long"), 3u);
  EXPECT_EQ(back->metadata, plan.metadata);
}

TEST(Plan, WhereResultsGoIsNoPartOfIt) {
  RunPlan one = sample_plan(), two = sample_plan();
  one.argv.insert(one.argv.end(), {"--run-dir", "a", "--json=-", "--no-run-dir", "--seed", "3"});
  two.argv.insert(two.argv.end(), {"--run_dir=b", "--seed", "3"});
  one.flags["run-dir"] = "a";
  two.flags["run-dir"] = "b";
  EXPECT_EQ(plan_to_json(one), plan_to_json(two));
}

TEST(Plan, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[]", "{}", "{\"version\": 2}", "{\"version\": 1}"}) {
    const auto plan = plan_from_json(text, "plan.json");
    ASSERT_FALSE(plan.has_value()) << text;
    EXPECT_NE(plan.error().message.find("plan.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace tokenstone::record
