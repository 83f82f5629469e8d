// An OpenAI-compatible HTTP server as a Target.
//
// What: a pool of kept-alive connections, opened ahead of need, one request at a time on each. `sent` is taken when the
// last byte of the request has been handed to the kernel, so that no connection set-up lies in TTFT; set-up that a
// request had to wait for is its Outcome's connect_ns. Arrivals are the kernel's receive stamps, else the readiness of
// the read. `parsed` is taken per event. A pooled connection that the server had closed meanwhile costs one silent
// resend on another one if no byte of the answer had come (counted); nothing else is ever sent twice. An answer ends at
// [DONE]; its connection is used again if the response's end follows promptly.
//
// Ownership: see runtime/target.h; the loop outlives the target. Threads: the loop's. Units: ns.
// on_sent may be called inside `submit`; on_end never is. Failure: each request's, by class, in its Outcome.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "http/request_writer.h"
#include "runtime/target.h"

namespace tokenstone::loadgen {

enum class HttpBackend { openai, openai_chat };

struct HttpTargetOptions {
  std::string base_url;  ///< http://host:port[/prefix]
  std::string endpoint;  ///< empty: /v1/completions or /v1/chat/completions
  HttpBackend backend = HttpBackend::openai;
  std::string model;  ///< as the server names it; left out of the body when empty
  bool stream = true;
  bool ignore_eos = false;
  std::optional<double> temperature, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<std::int64_t> top_k, logprobs;
  std::string extra_body;  ///< JSON object merged over the fields above, or empty
  std::vector<http::Header> headers;
  std::string api_key;            ///< bearer token; never in a message
  std::string request_id_prefix;  ///< in front of each RequestSpec's id in the x-request-id header
  TimeNs connect_timeout = 10 * kSecond;
  TimeNs first_token_timeout = 600 * kSecond;  ///< from `sent` to the first token
  TimeNs gap_timeout = 120 * kSecond;          ///< silence (no byte) after the first token
  TimeNs total_timeout = 6 * 3600 * kSecond;   ///< from `submit`; vLLM's client has 6 h
  std::uint32_t max_connections = 0;           ///< 0: no cap; above it requests wait for a connection
  std::uint32_t connections_ahead = 16;        ///< opened in `prepare`; the load's expected concurrency is a good value
  std::uint32_t max_connecting = 128;          ///< set-ups at the same time (a server's accept queue is short)
  std::size_t max_event_bytes = std::size_t{8} << 20;
  // What the checks before the run learnt, for info():
  std::string server;
  std::optional<std::int64_t> max_model_len;

  std::string endpoint_or_default() const;
  /// Lists every field that cannot be used, each with what was expected.
  Status validate() const;
};

struct HttpTargetStats {
  std::uint64_t connections_opened = 0, connect_failures = 0;
  std::uint64_t requests_on_pooled = 0;                  ///< sent on a connection that was ready before
  std::uint64_t resends = 0;                             ///< pooled connection found closed, request sent once more
  std::uint64_t stamped_reads = 0, unstamped_reads = 0;  ///< with a kernel receive stamp, without
  TimeNs stamp_uncertainty_ns = 0;                       ///< of the conversion of kernel stamps
};

class HttpTarget : public runtime::Target {
 public:
  virtual HttpTargetStats stats() const = 0;
};

/// Precondition: options.validate(). Resolves the host's name (blocks); a name that cannot be resolved refuses each
/// request.
std::unique_ptr<HttpTarget> make_http_target(HttpTargetOptions options, Loop& loop);

/// The JSON body of a request. Errors (usage): token ids or chat messages with a back end that cannot carry them, an
/// extra body that is no JSON object.
Result<std::string> make_request_body(const HttpTargetOptions& options, const runtime::RequestSpec& request);

}  // namespace tokenstone::loadgen
