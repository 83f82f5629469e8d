// The bytes of answers, in vLLM's key order.
//
// A completions stream is, per step and choice, one event
//   data: {"id":"cmpl-..","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"
//   a","logprobs":null,
//          "finish_reason":null,"stop_reason":null}],"usage":null}
// whose last event of a choice holds the finish reason beside its text; with include_usage one more event with
// "choices":[] and the usage; then "data: [DONE]". A chat stream begins with a role event per choice and has "delta" in
// place of "text". The parts of an event that do not change within a stream are written once, when the ResponseWriter
// is made. Ownership: a ResponseWriter belongs to one request. Threads: one. Failure: none. Text must be UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/request.h"

namespace tokenstone::server {

struct UsageCounts {
  std::int64_t prompt = 0, completion = 0, cached = 0;
};

/// What a step adds to one choice.
struct ChoiceDelta {
  std::size_t index = 0;
  std::string_view text;
  sched::FinishReason reason = sched::FinishReason::none;  ///< none: goes on
  std::string_view stop_reason;                            ///< the stop string, if any
};

struct ChoiceText {
  std::string text;
  sched::FinishReason reason = sched::FinishReason::none;
  std::string stop_reason;
};

class ResponseWriter {
 public:
  struct Identity {
    bool chat = false;
    std::string id;            ///< with its prefix
    std::int64_t created = 0;  ///< Unix seconds
    std::string model;
    bool continuous_usage = false;
  };
  explicit ResponseWriter(Identity identity);

  void append_role_event(std::string& out, std::size_t index, const UsageCounts& usage) const;
  /// `usage` is the choice's own so far; it is written only with continuous_usage.
  void append_delta_event(std::string& out, const ChoiceDelta& delta, const UsageCounts& usage) const;
  void append_usage_event(std::string& out, const UsageCounts& usage) const;
  static void append_done_event(std::string& out);
  /// The whole answer of a request that does not stream.
  std::string body(const std::vector<ChoiceText>& choices, const UsageCounts& usage) const;

 private:
  void append_usage(std::string& out, const UsageCounts& usage, bool with_details) const;
  void append_event_end(std::string& out, const UsageCounts& usage) const;
  Identity identity_;
  std::string identity_json_;  ///< ,"created":..,"model":".."
  std::string event_head_;     ///< data: {"id":..,"choices":[
};

std::string_view finish_reason_name(sched::FinishReason reason);

}  // namespace tokenstone::server
