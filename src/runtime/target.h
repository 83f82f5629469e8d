// What the load generator knows of whatever answers: a server over HTTP, the embedded engine, a simulated device.
//
// Ownership: a Target lives as long as the run; a RequestSpec handed to `submit` must live until the sink's `on_end`,
// and so must the sink. Threads: every call, and every call of a sink, happens on the client loop's thread. Times:
// absolute, of that loop's clock. Failure: a request's failure arrives as its Outcome and never ends the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"
#include "record/records.h"
#include "record/request_spec.h"

namespace tokenstone::runtime {

using record::ChatMessage;
using record::RequestSpec;

/// How a request ended, with what only its end tells.
struct Outcome {
  TimeNs finished = kUnknownTime;
  record::ErrorClass error_class = record::ErrorClass::none;
  std::string error;  ///< one line; empty on success
  int http_status = 0;
  std::string finish_reason;
  std::int64_t usage_prompt_tokens = -1, usage_completion_tokens = -1, cached_tokens = -1;
  bool done_seen = true;
  TimeNs connect_ns = kUnknownTime;
  // Engine targets only:
  TimeNs arrival_time = kUnknownTime, scheduled_prefill_time = kUnknownTime, prefill_end = kUnknownTime;
  std::int32_t chunks = -1, preemptions = -1;
};

/// One request's observer. Order of calls: on_sent, on_first_byte, on_tokens*, on_end; a failure may cut it short at
/// any point, on_end always comes, once, and last.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  /// The last byte of the request has been handed to the kernel (HTTP), or submitted (engine, sim).
  virtual void on_sent(TimeNs t) = 0;
  virtual void on_first_byte(TimeNs t) = 0;
  /// A token-bearing event and its text (valid during the call only).
  virtual void on_tokens(const record::TokenEvent& event, std::string_view text) = 0;
  virtual void on_end(const Outcome& outcome) = 0;
};

struct TargetInfo {
  std::string kind;     ///< "http", "engine", "sim"
  std::string address;  ///< base URL, "engine", "sim:const"
  std::string model;    ///< as the server names it; empty when unknown
  std::string server;   ///< software and version; empty when unknown
  std::optional<std::int64_t> max_model_len;
  bool virtual_time = false;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual TargetInfo info() const = 0;
  /// Work that must not sit inside a measured time: request bodies are made here, before the run starts.
  virtual void prepare(std::span<const RequestSpec> requests) = 0;
  virtual Ticket submit(const RequestSpec& request, RequestSink& sink) = 0;
  /// Ends the request with class `cancelled` (or as given); its on_end is called before this returns or soon after.
  virtual void cancel(Ticket ticket, record::ErrorClass reason) = 0;
  /// Empties the prefix cache; false when the target cannot.
  virtual bool reset_cache() = 0;
};

}  // namespace tokenstone::runtime
