// An OpenAI-compatible server without a model and with known times: the ruler for the load generator.
//
// What: answers /v1/completions and /v1/chat/completions with a stream whose first event leaves `ttft` after the
// request was read and whose later ones follow each `itl`. The text of each event is " @<ns>": the monotonic time just
// before it was handed to the kernel, so that a client on the same machine can compare its own stamps with the truth.
// Usage and [DONE] follow at once, in a write of their own. GET /v1/models, /version and /health answer; POST
// /reset_prefix_cache answers 200. Other behaviours give the failures that a client must classify. Ownership: the
// server owns its thread and sockets until destroyed. Threads: the functions may be called from any. Units: ns.
// Failure: `start` returns an Error when the port is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::bench {

enum class NullBehaviour {
  stream,            ///< the whole answer
  status,            ///< `status` with an error object
  html,              ///< 200 with a page
  json_error,        ///< 200 with an error object
  gzip,              ///< 200, an event stream said to be packed
  empty,             ///< [DONE] alone
  never_answer,      ///< reads the request, says nothing
  close_unanswered,  ///< reads the request, closes
  close_reused,      ///< as stream, but closes unanswered whenever a connection brings its second request
  truncate,          ///< after `fail_after_events` the connection ends inside the body
  reset,             ///< after `fail_after_events` a connection reset
  stall,             ///< after `fail_after_events` nothing more
  error_event,       ///< after `fail_after_events` an error object, then [DONE]
  malformed_event,   ///< after `fail_after_events` an event that is not JSON, then the rest
};
/// The behaviour of that name (as spelled above); false when there is none.
bool behaviour_from_string(std::string_view name, NullBehaviour& behaviour);

struct NullServerOptions {
  TimeNs ttft = 50 * kMillisecond;
  TimeNs itl = 10 * kMillisecond;
  int tokens_per_event = 1;
  int events_per_write = 1;
  int output_tokens = 0;  ///< 0: what the request asks for
  bool continuous_usage = false;
  NullBehaviour behaviour = NullBehaviour::stream;
  int status = 503;
  int fail_after_events = 2;
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: a free one
  int pin_cpu = -1;        ///< -1: not pinned
};

struct NullServerStats {
  std::uint64_t connections = 0, requests = 0, events = 0;
  std::uint64_t abandoned = 0;  ///< streams whose client went away before the end
  /// How late events left, against their due time.
  double lateness_p50_us = 0, lateness_p99_us = 0, lateness_max_us = 0;
};

class NullServer {
 public:
  static Result<std::unique_ptr<NullServer>> start(const NullServerOptions& options);
  ~NullServer();
  NullServer(const NullServer&) = delete;
  NullServer& operator=(const NullServer&) = delete;

  std::uint16_t port() const;
  std::string base_url() const;
  NullServerStats stats() const;
  /// The bodies of the generation requests so far, with their path in front ("/v1/completions {...}"); the first
  /// thousand are kept.
  std::vector<std::string> bodies() const;

 private:
  struct Impl;
  explicit NullServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::bench
