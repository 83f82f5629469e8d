#include "loadgen/http_target.h"

#include <fmt/format.h>

#include "base/check.h"
#include "loadgen/http_fetch.h"
#include "loadgen/http_target_state.h"
#include "platform/environment.h"

namespace tokenstone::loadgen {
namespace http_target_detail {
namespace {

constexpr TimeNs kResetCacheTimeout = 30 * kSecond;

ErrorClass class_of(http::Failure failure) {
  switch (failure) {
    case http::Failure::none:
      return ErrorClass::none;
    case http::Failure::http_status:
      return ErrorClass::http_status;
    case http::Failure::stream_error:
      return ErrorClass::stream_error;
    case http::Failure::truncated_stream:
      return ErrorClass::truncated_stream;
    case http::Failure::malformed_event:
      return ErrorClass::malformed_event;
    case http::Failure::not_event_stream:
      return ErrorClass::not_event_stream;
    case http::Failure::empty_stream:
      return ErrorClass::empty_stream;
    case http::Failure::unsupported_content_encoding:
      return ErrorClass::unsupported_content_encoding;
    case http::Failure::server_closed:
      return ErrorClass::server_closed;
  }
  return ErrorClass::malformed_event;
}

}  // namespace

Target::Target(HttpTargetOptions options, Loop& loop)
    : options_(std::move(options)),
      loop_(loop),
      url_(*http::parse_url(options_.base_url)),
      path_(http::join_path(url_, options_.endpoint_or_default())),
      headers_(with_api_key(options_.headers, options_.api_key)) {
  platform::raise_open_file_limit();
  auto addresses = platform::resolve(url_.host, url_.port);
  if (addresses) {
    addresses_ = *std::move(addresses);
  } else {
    resolve_error_ = addresses.error().message;
  }
}

Target::~Target() {
  loop_.cancel(failed_timer_);
  for (auto& [ticket, request] : requests_) loop_.cancel(request->deadline);
  while (!connections_.empty()) close(*connections_.begin()->first);
}

runtime::TargetInfo Target::info() const {
  return {.kind = "http",
          .address = url_.text(),
          .model = options_.model,
          .server = options_.server,
          .max_model_len = options_.max_model_len};
}

HttpTargetStats Target::stats() const {
  HttpTargetStats stats = stats_;
  stats.stamp_uncertainty_ns = stamp_clock_.worst_uncertainty_ns();
  return stats;
}

bool Target::reset_cache() {
  const auto reply = http_post(url_, "/reset_prefix_cache", headers_, {}, kResetCacheTimeout);
  return reply && reply->ok();
}

std::string Target::wire_of(const RequestSpec& spec) const {
  const auto body = make_request_body(options_, spec);
  TS_CHECK(body.has_value(), body ? "" : body.error().message);
  std::vector<http::Header> headers = headers_;
  headers.push_back({"x-request-id", options_.request_id_prefix + spec.request_id});
  return http::write_request("POST", url_, path_, headers, *body);
}

void Target::prepare(std::span<const RequestSpec> requests) {
  const Scope scope(*this);
  for (const RequestSpec& spec : requests) prepared_[&spec] = {spec.index, spec.request_id, wire_of(spec)};
  ahead_ = std::max(ahead_, std::min<std::size_t>(requests.size(), options_.connections_ahead));
  open_connections(Ahead::yes);
}

std::string Target::take_wire(const RequestSpec& spec) {
  const auto found = prepared_.find(&spec);
  if (found == prepared_.end()) return wire_of(spec);
  Prepared prepared = std::move(found->second);
  prepared_.erase(found);
  // Another request may stand at the address of one that was prepared and never sent.
  const bool same = prepared.index == spec.index && prepared.request_id == spec.request_id;
  return same ? std::move(prepared.wire) : wire_of(spec);
}

Ticket Target::submit(const RequestSpec& spec, RequestSink& sink) {
  const Scope scope(*this);
  auto owned = std::make_unique<Request>();
  Request& request = *owned;
  request.ticket = {next_ticket_++};
  request.sink = &sink;
  request.wire = take_wire(spec);
  request.submitted = loop_.now();
  requests_.emplace(request.ticket, std::move(owned));
  const Ticket ticket = request.ticket;
  waiting_.push_back(&request);
  arm(request);
  serve_waiting();
  open_connections(Ahead::yes);
  return ticket;
}

void Target::cancel(Ticket ticket, ErrorClass reason) {
  const Scope scope(*this);
  const auto found = requests_.find(ticket);
  if (found == requests_.end()) return;
  if (found->second->in_callback) {
    found->second->cancelled = reason;
  } else {
    fail(*found->second, reason, "cancelled by the client");
  }
}

// ---- Ends

Outcome Target::outcome_of(const Request& request) const {
  Outcome outcome;
  outcome.connect_ns = request.connect_ns;
  if (request.connection == nullptr) return outcome;
  const Connection& c = *request.connection;
  const http::StreamSummary& summary = c.assembler.summary();
  outcome.finished = c.last_arrived != 0 ? c.last_arrived : loop_.now();
  outcome.error_class = class_of(summary.failure);
  outcome.error = summary.error;
  outcome.http_status = summary.http_status;
  outcome.finish_reason = summary.finish_reason;
  outcome.usage_prompt_tokens = summary.usage.prompt_tokens;
  outcome.usage_completion_tokens = summary.usage.completion_tokens;
  outcome.cached_tokens = summary.usage.cached_tokens;
  outcome.done_seen = summary.done_seen || !options_.stream;
  return outcome;
}

/// Ends a request from our side, or by a broken connection. A failure that the answer itself told of before keeps its
/// class.
void Target::fail(Request& request, ErrorClass error, std::string text) {
  Outcome outcome = outcome_of(request);
  outcome.finished = loop_.now();
  if (outcome.error_class == ErrorClass::none) {
    outcome.error_class = error;
    outcome.error = std::move(text);
  }
  if (request.connection == nullptr) {
    std::erase(waiting_, &request);
  } else {
    Connection& c = *request.connection;
    c.request = nullptr;
    close(c);
  }
  end(request, outcome);
  open_connections(Ahead::no);
}

void Target::end(Request& request, const Outcome& outcome) {
  loop_.cancel(request.deadline);
  const auto found = requests_.find(request.ticket);
  const std::unique_ptr<Request> owned = std::move(found->second);
  requests_.erase(found);
  owned->sink->on_end(outcome);
}

/// The next limit that applies, and the class of exceeding it.
std::pair<TimeNs, ErrorClass> Target::next_deadline(const Request& request) const {
  std::pair<TimeNs, ErrorClass> next{after(request.submitted, options_.total_timeout), ErrorClass::total_timeout};
  std::pair<TimeNs, ErrorClass> other{kNever, ErrorClass::none};
  if (request.token_seen) {
    other = {after(request.last_byte, options_.gap_timeout), ErrorClass::gap_timeout};
  } else if (request.sent != kUnknownTime) {
    other = {after(request.sent, options_.first_token_timeout), ErrorClass::first_token_timeout};
  }
  return std::min(next, other);
}

/// One timer a request, looked at when it fires: sending and events do not touch it. It fires early enough for a limit
/// that begins to run later.
void Target::arm(Request& request) {
  const TimeNs now = loop_.now();
  const TimeNs at = std::min(
      {next_deadline(request).first, after(now, options_.gap_timeout), after(now, options_.first_token_timeout)});
  if (at != kNever) request.deadline = loop_.at(at, [this, &request] { on_deadline(request); });
}

void Target::on_deadline(Request& request) {
  const Scope scope(*this);
  const auto [at, error] = next_deadline(request);
  if (loop_.now() < at) return arm(request);
  static constexpr auto kWords = [](ErrorClass c) {
    return c == ErrorClass::total_timeout ? "the answer was not complete"
           : c == ErrorClass::gap_timeout ? "nothing came any more"
                                          : "no token came";
  };
  const TimeNs limit = error == ErrorClass::total_timeout ? options_.total_timeout
                       : error == ErrorClass::gap_timeout ? options_.gap_timeout
                                                          : options_.first_token_timeout;
  fail(request, error, fmt::format("{} within {} s", kWords(error), to_seconds(limit)));
}

}  // namespace http_target_detail

std::unique_ptr<HttpTarget> make_http_target(HttpTargetOptions options, Loop& loop) {
  const Status valid = options.validate();
  TS_CHECK(valid.has_value(), valid ? "" : valid.error().message);
  return std::make_unique<http_target_detail::Target>(std::move(options), loop);
}

}  // namespace tokenstone::loadgen
