// The three records of a run: requests, their token events, engine steps. Plain data; names are the columns of
// requests.csv, events.bin and steps.csv (docs/formats.md). Times are ns relative to the run's start; kUnknownTime
// (an empty field in CSV) where not observed. Counts of -1 are unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone::record {

enum class ErrorClass : std::uint8_t {
  none,
  refused,
  connect_timeout,
  first_token_timeout,
  gap_timeout,
  total_timeout,
  reset,
  http_status,
  stream_error,
  truncated_stream,
  malformed_event,
  not_event_stream,
  empty_stream,
  unsupported_content_encoding,
  server_closed,
  cancelled,
};
/// The name used in files; empty for none.
std::string_view to_string(ErrorClass error);
/// The inverse; `none` for an empty text, nothing for an unknown name is an error of the caller's file.
bool from_string(std::string_view name, ErrorClass& error);

enum class LengthSource : std::uint8_t { unknown, usage, tokenizer, events, engine };
std::string_view to_string(LengthSource source);
bool from_string(std::string_view name, LengthSource& source);

enum class TokenKind : std::uint8_t { text, reasoning, tool_call };
std::string_view to_string(TokenKind kind);
bool from_string(std::string_view name, TokenKind& kind);

/// One stream event that carried at least one token.
struct TokenEvent {
  TimeNs arrived = kUnknownTime;  ///< kernel receive stamp where there is one, else readiness
  TimeNs parsed = kUnknownTime;
  std::int32_t tokens = -1;  ///< how many it carried; -1 unknown, never guessed
  TokenKind kind = TokenKind::text;
  bool shared_stamp = false;  ///< the read carried several events: `arrived` is an upper bound for this one
};

struct RequestRecord {
  std::uint32_t index = 0;  ///< place in the plan
  std::string request_id;
  std::string class_name;  ///< column `class`: chat, generate, summarize, long, or the data set's name
  std::string session;
  TimeNs intended = kUnknownTime;
  TimeNs sent = kUnknownTime;
  TimeNs first_byte = kUnknownTime;
  TimeNs first_token = kUnknownTime;
  TimeNs last_token = kUnknownTime;
  TimeNs finished = kUnknownTime;
  std::int64_t prompt_len = -1;  ///< the server's usage; else the plan's
  std::int64_t cached_tokens = -1;
  std::int64_t output_len = -1;
  LengthSource output_len_source = LengthSource::unknown;
  std::string finish_reason;
  ErrorClass error_class = ErrorClass::none;
  int http_status = 0;  ///< 0: none received
  std::uint64_t text_bytes = 0;
  // From the embedded or simulated engine:
  TimeNs arrival_time = kUnknownTime;
  TimeNs scheduled_prefill_time = kUnknownTime;
  TimeNs prefill_end = kUnknownTime;
  std::int32_t chunks = -1;
  std::int32_t preemptions = -1;
  // Kept beside the columns (events.bin, --save-detailed, findings):
  std::vector<TokenEvent> events;
  std::string text;   ///< received text; kept when the run asked for it or the request failed (capped)
  std::string error;  ///< one line for a person; never holds a secret
  std::int64_t planned_prompt_len = -1;
  std::int64_t planned_output_len = -1;
  std::int64_t usage_output_len = -1;  ///< what the server's usage said
  std::int64_t event_count = 0;        ///< token-bearing events
  TimeNs connect_ns = kUnknownTime;    ///< set-up of the connection, when this request caused one
  bool prompt_len_nominal = false;     ///< no tokenizer and no usage: the asked length
  bool missing_done = false;           ///< ended after finish_reason without [DONE]
  bool was_sent() const { return sent != kUnknownTime; }
  bool succeeded() const { return error_class == ErrorClass::none && finished != kUnknownTime; }
};

struct StepRecord {
  std::uint64_t step_id = 0;
  TimeNs step_start_time = 0, step_end_time = 0;
  std::uint32_t num_prefill_tokens = 0, num_decode_sequences = 0, num_batched_tokens = 0, num_outputs = 0, chunked = 0;
  std::uint32_t waiting_queue_len = 0, running_queue_len = 0, prefilling_queue_len = 0;
  std::uint32_t blocks_active = 0, blocks_cached_idle = 0, blocks_free = 0;
  std::uint64_t wasted_slots = 0, allocated_slots = 0, hit_tokens = 0, query_tokens = 0;
  std::uint32_t evictions = 0, preemptions = 0, kv_blocked_requests = 0, padded_tokens = 0, drafted = 0, accepted = 0;
  TimeNs schedule_ns = 0, forward_ns = 0, sampling_ns = 0, detokenize_ns = 0;
};

/// Where the engine's step records go. Called on the engine's thread; must not block.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual void on_step(const StepRecord& step) = 0;
};

}  // namespace tokenstone::record
