// events.bin: every token-bearing stream event of a run, fixed width, little endian.
//
//   header, 16 bytes: "TSEVENT1", u32 width of a record (32), u32 zero
//   record, 32 bytes: u32 index (place in the plan) · i32 tokens (-1 unknown) · i64 arrived · i64 parsed · u8 kind
//                     (0 text, 1 reasoning, 2 tool_call) · u8 flags (bit 0: shared stamp) · 6 zero bytes
//
// Times are ns from the run's start, INT64_MIN where not known. A request's events stand together, in their order. A
// reader takes the width from the header and skips what a later version may add to a record's end. Ownership, threads
// and failure as in request_csv.h. A torn last record is left out.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "record/append_file.h"
#include "record/records.h"

namespace tokenstone::record {

struct IndexedEvent {
  std::uint32_t index = 0;
  TokenEvent event;
};

class EventsWriter {
 public:
  static Result<EventsWriter> create(const std::string& path);
  void write(std::uint32_t index, const std::vector<TokenEvent>& events);
  Status maybe_flush(TimeNs now) { return file_.maybe_flush(now); }
  Status flush() { return file_.flush(); }

 private:
  explicit EventsWriter(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

Result<std::vector<IndexedEvent>> parse_events(std::string_view bytes, const std::string& path);
Result<std::vector<IndexedEvent>> read_events(const std::string& path);

}  // namespace tokenstone::record
