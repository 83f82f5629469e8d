#include "http/assembler_harness.h"

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text.h"

namespace tokenstone::http {
namespace {

class Collector final : public StreamObserver {
 public:
  explicit Collector(AnswerRecord& record) : record_(record) {}
  void on_token(const StreamToken& token, std::string_view text) override {
    if (text.empty()) return;
    auto& list = token.kind == DeltaKind::text        ? record_.text
                 : token.kind == DeltaKind::reasoning ? record_.reasoning
                                                      : record_.tool_calls;
    list.emplace_back(text);
  }

 private:
  AnswerRecord& record_;
};

std::vector<std::string_view> pieces_of(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  std::vector<std::string_view> pieces;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    if (cut <= from || cut >= bytes.size()) continue;
    pieces.push_back(bytes.substr(from, cut - from));
    from = cut;
  }
  pieces.push_back(bytes.substr(from));
  return pieces;
}

std::vector<AnswerRecord> assemble_body(const AnswerInput& input, const std::vector<std::string_view>& pieces) {
  std::vector<AnswerRecord> records(1);
  Collector collector(records[0]);
  BodyAssembler assembler(collector, input.options);
  assembler.begin(input.head);
  TimeNs now = 0;
  for (const auto& piece : pieces) {
    // A copy of exactly the piece's size, so that a reader of bytes behind it is seen by the address sanitizer.
    const std::vector<char> read(piece.begin(), piece.end());
    assembler.body(std::string_view(read.data(), read.size()), ++now);
    assembler.end_of_read();
  }
  assembler.end_of_body(true);
  records[0].summary = assembler.summary();
  return records;
}

std::vector<AnswerRecord> assemble_http(const AnswerInput& input, const std::vector<std::string_view>& pieces) {
  std::vector<AnswerRecord> records;
  AnswerRecord record;
  Collector collector(record);
  StreamAssembler assembler(collector, input.options);
  const auto close_record = [&] {
    record.summary = assembler.summary();
    record.reusable = assembler.reusable();
    records.push_back(std::move(record));
    record = {};
    assembler.reset();
  };
  TimeNs now = 0;
  for (std::string_view piece : pieces) {
    ++now;
    while (!piece.empty()) {
      const std::vector<char> read(piece.begin(), piece.end());
      piece.remove_prefix(assembler.feed(std::string_view(read.data(), read.size()), now));
      if (!assembler.response_complete()) break;
      close_record();
    }
  }
  if (assembler.any_byte() || records.empty()) {
    assembler.finish();
    close_record();
  }
  return records;
}

std::string serialized(const std::vector<AnswerRecord>& records) {
  std::string all;
  for (const auto& record : records) all += record.serialized() + "\n";
  return all;
}

}  // namespace

std::string AnswerRecord::serialized() const {
  // Text is shown with its borders; pieces that are not UTF-8 are made so, which keeps differing bytes different
  // enough.
  const auto valid = [](const std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const auto& item : list) out.push_back(to_valid_utf8(item));
    return out;
  };
  const nlohmann::ordered_json json = {
      {"text", valid(text)},
      {"reasoning", valid(reasoning)},
      {"tool_calls", valid(tool_calls)},
      {"failure", static_cast<int>(summary.failure)},
      {"error", to_valid_utf8(summary.error)},
      {"code", summary.error_code},
      {"status", summary.http_status},
      {"finish_reason", to_valid_utf8(summary.finish_reason)},
      {"usage", {summary.usage.prompt_tokens, summary.usage.completion_tokens, summary.usage.cached_tokens}},
      {"done", summary.done_seen},
      {"events", summary.dispatched_events},
      {"token_events", summary.token_events},
      {"first_token_event", summary.first_token_event},
      {"foreign", summary.foreign_events},
      {"comments", summary.comment_lines},
      {"reusable", reusable}};
  return json.dump();
}

std::vector<AnswerRecord> assemble(const AnswerInput& input, const std::vector<std::size_t>& cuts) {
  const auto pieces = pieces_of(input.bytes, cuts);
  return input.layer == Layer::body ? assemble_body(input, pieces) : assemble_http(input, pieces);
}

std::vector<std::size_t> every(std::size_t size, std::size_t total) {
  std::vector<std::size_t> cuts;
  for (std::size_t at = size; at < total; at += size) cuts.push_back(at);
  return cuts;
}

std::vector<AnswerRecord> assemble_under_cuts(const AnswerInput& input, bool all_cuts, std::string& first_difference,
                                              std::size_t& feedings) {
  const std::size_t total = input.bytes.size();
  auto whole = assemble(input, {});
  const std::string expected = serialized(whole);
  feedings = 1;
  first_difference.clear();
  const auto check = [&](const std::vector<std::size_t>& cuts, const std::string& name) {
    ++feedings;
    const std::string got = serialized(assemble(input, cuts));
    if (got != expected && first_difference.empty()) first_difference = name + ": " + got + " instead of " + expected;
  };
  const std::vector<std::size_t> sizes =
      all_cuts ? std::vector<std::size_t>{1, 2, 3, 5, 7, 64} : std::vector<std::size_t>{1, 4096, 16384, 65536};
  for (const std::size_t size : sizes) check(every(size, total), "pieces of " + std::to_string(size));
  if (all_cuts) {
    for (std::size_t cut = 1; cut < total; ++cut) check({cut}, "cut at " + std::to_string(cut));
  } else {
    Rng rng(1, streams::shuffle);
    for (int i = 0; i < 200; ++i) {
      const auto cut = static_cast<std::size_t>(rng.uniform_int(1, static_cast<std::int64_t>(total) - 1));
      check({cut}, "cut at " + std::to_string(cut));
    }
  }
  return whole;
}

}  // namespace tokenstone::http
