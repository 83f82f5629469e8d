// For tests: one answer fed to the assembler in pieces, and everything but its times as comparable values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/stream_assembler.h"

namespace tokenstone::http {

struct AnswerRecord {
  std::vector<std::string> text, reasoning, tool_calls;
  StreamSummary summary;
  bool reusable = false;

  /// All of it but times; two feedings of the same bytes must give the same text.
  std::string serialized() const;
};

enum class Layer { body, http };

struct AnswerInput {
  Layer layer = Layer::body;
  std::string bytes;
  ResponseHead head{.status = 200, .content_type = "text/event-stream"};  ///< for Layer::body
  AssemblerOptions options;
};

/// Feeds the pieces between the cuts (ascending offsets) as one read each, then the end of the connection. An http
/// input may hold several responses; each gives a record.
std::vector<AnswerRecord> assemble(const AnswerInput& input, const std::vector<std::size_t>& cuts);

/// The whole input in pieces of `size` bytes.
std::vector<std::size_t> every(std::size_t size, std::size_t total);

/// Feeds the input whole and under each cut rule; returns the whole feeding's records, and in `first_difference` what
/// the first feeding that differed was (empty: none). all_cuts: pieces of 1, 2, 3, 5, 7, 64 and two pieces at every
/// place; else byte by byte, reads of 4096, 16384 and 65536 bytes, and two pieces at 200 seeded places.
std::vector<AnswerRecord> assemble_under_cuts(const AnswerInput& input, bool all_cuts, std::string& first_difference,
                                              std::size_t& feedings);

}  // namespace tokenstone::http
