#include "loadgen/http_target.h"

#include <fmt/format.h>

#include <cerrno>
#include <deque>

#include "base/check.h"
#include "http/stream_assembler.h"
#include "http/url.h"
#include "loadgen/http_fetch.h"
#include "platform/environment.h"
#include "platform/socket.h"
#include "platform/stamp_clock.h"

namespace tokenstone::loadgen {
namespace {

using record::ErrorClass;
using runtime::Outcome;
using runtime::RequestSink;
using runtime::RequestSpec;

constexpr std::size_t kReadBytes = 64 * 1024;
/// How long an answer that has ended with [DONE] may still owe the end of its response before its connection is given up.
constexpr TimeNs kDrainTime = 250 * kMillisecond;
constexpr TimeNs kResetCacheTimeout = 30 * kSecond;

ErrorClass class_of(http::Failure failure) {
  switch (failure) {
    case http::Failure::none: return ErrorClass::none;
    case http::Failure::http_status: return ErrorClass::http_status;
    case http::Failure::stream_error: return ErrorClass::stream_error;
    case http::Failure::truncated_stream: return ErrorClass::truncated_stream;
    case http::Failure::malformed_event: return ErrorClass::malformed_event;
    case http::Failure::not_event_stream: return ErrorClass::not_event_stream;
    case http::Failure::empty_stream: return ErrorClass::empty_stream;
    case http::Failure::unsupported_content_encoding: return ErrorClass::unsupported_content_encoding;
    case http::Failure::server_closed: return ErrorClass::server_closed;
  }
  return ErrorClass::malformed_event;
}

record::TokenKind kind_of(http::DeltaKind kind) { return static_cast<record::TokenKind>(kind); }
static_assert(static_cast<int>(http::DeltaKind::tool_call) == static_cast<int>(record::TokenKind::tool_call));

TimeNs after(TimeNs start, TimeNs limit) { return limit > kNever - start ? kNever : start + limit; }

struct Connection;

struct Request {
  Ticket ticket;
  RequestSink* sink = nullptr;
  std::string wire;                  ///< the whole request as it is sent
  TimeNs submitted = 0;
  TimeNs sent = kUnknownTime;
  TimeNs first_byte = kUnknownTime;
  TimeNs last_byte = kUnknownTime;
  TimeNs connect_ns = kUnknownTime;
  bool token_seen = false;
  bool resent = false;
  bool in_callback = false;          ///< its sink is being called: a cancel waits until that returns
  std::optional<ErrorClass> cancelled;
  Connection* connection = nullptr;  ///< null while it waits for one
  TimerId deadline;
};

enum class Phase { connecting, idle, sending, receiving, draining, closed };

/// One socket. The observer of its answers, which it passes on to the request it serves.
struct Connection final : http::StreamObserver {
  Connection(const Loop& loop_in, http::AssemblerOptions options) : loop(loop_in), assembler(*this, options) {}

  void on_token(const http::StreamToken& token, std::string_view text) override {
    if (request == nullptr) return;
    request->token_seen = true;
    request->sink->on_tokens({.arrived = token.arrived,
                              .parsed = loop.now(),
                              .tokens = token.tokens,
                              .kind = kind_of(token.kind),
                              .shared_stamp = token.shared_stamp},
                             text);
  }

  const Loop& loop;
  platform::Fd fd;
  Phase phase = Phase::connecting;
  std::size_t address = 0;           ///< which of the host's addresses
  TimeNs connect_started = 0;
  bool pooled = false;               ///< was idle before it got its request
  Request* request = nullptr;
  std::size_t written = 0;
  bool awaits_writable = true;       ///< what the loop watches for, beside readable
  TimeNs last_arrived = 0;
  TimerId timer;                     ///< set-up or drain
  http::StreamAssembler assembler;
};

class Target final : public HttpTarget {
 public:
  Target(HttpTargetOptions options, Loop& loop);
  ~Target() override;

  runtime::TargetInfo info() const override;
  void prepare(std::span<const RequestSpec> requests) override;
  Ticket submit(const RequestSpec& spec, RequestSink& sink) override;
  void cancel(Ticket ticket, ErrorClass reason) override;
  bool reset_cache() override;
  HttpTargetStats stats() const override;

 private:
  /// While one is alive, closed connections are kept: their code may still be running.
  struct Scope {
    explicit Scope(Target& t) : target(t) { ++target.depth_; }
    ~Scope() {
      if (--target.depth_ == 0) target.dead_.clear();
    }
    Target& target;
  };
  struct Prepared {
    std::uint32_t index;
    std::string request_id;
    std::string wire;
  };

  std::string wire_of(const RequestSpec& spec) const;
  std::string take_wire(const RequestSpec& spec);
  // Connections.
  enum class Ahead { no, yes };
  void open_connections(Ahead ahead);
  void open_connection(std::size_t address);
  void connected(Connection& c);
  void connect_failed(std::size_t address, ErrorClass error, const std::string& text);
  void on_io(Connection& c, Readiness ready);
  void make_idle(Connection& c);
  void await_writable(Connection& c, bool writable);
  void close(Connection& c);
  void serve_waiting();
  // One request on its connection.
  void begin(Connection& c, Request& request);
  void write_more(Connection& c);
  void read_more(Connection& c);
  TimeNs arrival_of(const Connection& c, const platform::Received& got, TimeNs ready);
  bool take_bytes(Connection& c, std::string_view bytes, TimeNs arrived);
  void settle(Connection& c, bool leftover);
  void broke(Connection& c, int error);
  void peer_ended(Connection& c);
  bool resend(Connection& c);
  bool cancel_if_asked(Connection& c);
  // Ends.
  Outcome outcome_of(const Request& request) const;
  void fail(Request& request, ErrorClass error, std::string text);
  void end(Request& request, const Outcome& outcome);
  void on_deadline(Request& request);
  std::pair<TimeNs, ErrorClass> next_deadline(const Request& request) const;
  void arm(Request& request);

  const HttpTargetOptions options_;
  Loop& loop_;
  const http::Url url_;
  const std::string path_;
  const std::vector<http::Header> headers_;
  std::vector<platform::SocketAddress> addresses_;
  std::string resolve_error_;
  std::size_t preferred_address_ = 0;
  bool ever_connected_ = false;

  std::unordered_map<const RequestSpec*, Prepared> prepared_;
  std::unordered_map<Ticket, std::unique_ptr<Request>> requests_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;            ///< the most recently used last, which is taken first
  std::deque<Request*> waiting_;             ///< for a connection
  std::size_t connecting_ = 0;
  std::size_t ahead_ = 0;                    ///< connections that stand ready or in use at least
  std::vector<std::unique_ptr<Connection>> dead_;
  int depth_ = 0;
  std::uint64_t next_ticket_ = 1;
  std::vector<char> buffer_ = std::vector<char>(kReadBytes);
  platform::StampClock stamp_clock_;
  HttpTargetStats stats_;
  /// Set-ups that failed at once; they are reported from the loop, never inside `submit`.
  std::vector<std::pair<std::size_t, int>> failed_at_once_;
  TimerId failed_timer_;
};

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

// ---- Connections

/// Opens what the waiting requests need, within the caps; ahead of need one more than is in use, and `ahead_` in all.
void Target::open_connections(Ahead ahead) {
  std::size_t wanted = waiting_.size();
  if (ahead == Ahead::yes) {
    const std::size_t served = connections_.size() - connecting_ + waiting_.size();
    wanted += std::max<std::size_t>(idle_.empty() ? 1 : 0, ahead_ - std::min(ahead_, served));
  }
  while (connecting_ + failed_at_once_.size() < wanted && connecting_ < options_.max_connecting &&
         (options_.max_connections == 0 || connections_.size() < options_.max_connections)) {
    open_connection(preferred_address_);
  }
}

void Target::open_connection(std::size_t address) {
  const auto fail_at_once = [&](int error) {
    if (failed_at_once_.empty()) {
      failed_timer_ = loop_.at(loop_.now(), [this] {
        const Scope scope(*this);
        for (const auto& [at, problem] : std::exchange(failed_at_once_, {})) {
          connect_failed(at, ErrorClass::refused, problem == 0 ? resolve_error_ : platform::errno_text(problem));
        }
        open_connections(Ahead::no);
      });
    }
    failed_at_once_.emplace_back(address, error);
  };
  if (addresses_.empty()) return fail_at_once(0);
  auto start = platform::start_connect(addresses_[address]);
  if (start.error != 0) return fail_at_once(start.error);
  auto owned = std::make_unique<Connection>(
      loop_, http::AssemblerOptions{.streamed = options_.stream, .max_event_bytes = options_.max_event_bytes});
  Connection& c = *owned;
  c.fd = std::move(start.fd);
  c.address = address;
  c.connect_started = loop_.now();
  connections_.emplace(&c, std::move(owned));
  ++connecting_;
  // A set-up that was done at once is writable at once: one way for both.
  loop_.watch(c.fd.get(), {.writable = true}, [this, &c](Readiness ready) { on_io(c, ready); });
  c.timer = loop_.at(after(c.connect_started, options_.connect_timeout), [this, &c] {
    const Scope scope(*this);
    close(c);
    connect_failed(c.address, ErrorClass::connect_timeout,
                   fmt::format("no connection within {} s", to_seconds(options_.connect_timeout)));
    open_connections(Ahead::no);
  });
}

void Target::connected(Connection& c) {
  const int error = platform::connect_error(c.fd.get());
  if (error != 0) {
    close(c);
    connect_failed(c.address, ErrorClass::refused, platform::errno_text(error));
    return open_connections(Ahead::no);
  }
  loop_.cancel(c.timer);
  --connecting_;
  ++stats_.connections_opened;
  ever_connected_ = true;
  preferred_address_ = c.address;
  await_writable(c, false);
  if (waiting_.empty()) {
    make_idle(c);
    return open_connections(Ahead::yes);
  }
  Request& request = *waiting_.front();
  waiting_.pop_front();
  request.connect_ns = loop_.now() - c.connect_started;
  begin(c, request);
}

/// A name may have several addresses (::1 and 127.0.0.1) of which the server uses one: the next is tried while none has worked.
/// Else one failed set-up fails one request, unless enough other set-ups are under way.
void Target::connect_failed(std::size_t address, ErrorClass error, const std::string& text) {
  if (!ever_connected_ && address + 1 < addresses_.size()) return open_connection(address + 1);
  ++stats_.connect_failures;
  if (connecting_ + failed_at_once_.size() < waiting_.size()) {
    fail(*waiting_.front(), error,
         addresses_.empty() ? text : fmt::format("cannot connect to {}: {}", addresses_[address].text, text));
  }
}

void Target::on_io(Connection& c, Readiness ready) {
  const Scope scope(*this);
  switch (c.phase) {
    case Phase::connecting: return connected(c);
    case Phase::idle: return close(c);  // the server closed it, or sent bytes that nobody asked for
    case Phase::closed: return;
    default: break;
  }
  if (ready.writable && c.phase == Phase::sending) write_more(c);
  if ((ready.readable || ready.hangup) && c.phase != Phase::closed && c.phase != Phase::idle) read_more(c);
}

void Target::make_idle(Connection& c) {
  c.phase = Phase::idle;
  c.pooled = true;
  idle_.push_back(&c);
}

void Target::await_writable(Connection& c, bool writable) {
  if (c.awaits_writable == writable) return;
  c.awaits_writable = writable;
  loop_.rewatch(c.fd.get(), {.readable = true, .writable = writable});
}

void Target::close(Connection& c) {
  if (c.phase == Phase::closed) return;
  if (c.phase == Phase::connecting) --connecting_;
  if (c.phase == Phase::idle) std::erase(idle_, &c);
  loop_.cancel(c.timer);
  loop_.unwatch(c.fd.get());
  c.fd.reset();
  c.phase = Phase::closed;
  const auto found = connections_.find(&c);
  dead_.push_back(std::move(found->second));
  connections_.erase(found);
  if (depth_ == 0) dead_.clear();
}

void Target::serve_waiting() {
  while (!waiting_.empty() && !idle_.empty()) {
    Connection& c = *idle_.back();
    idle_.pop_back();
    Request& request = *waiting_.front();
    waiting_.pop_front();
    ++stats_.requests_on_pooled;
    begin(c, request);
  }
}

// ---- One request on its connection

void Target::begin(Connection& c, Request& request) {
  c.request = &request;
  request.connection = &c;
  c.written = 0;
  c.last_arrived = 0;
  c.assembler.reset();
  c.phase = Phase::sending;
  write_more(c);
}

void Target::write_more(Connection& c) {
  Request& request = *c.request;
  while (c.written < request.wire.size()) {
    int error = 0;
    const auto sent = platform::send_some(c.fd.get(), std::string_view(request.wire).substr(c.written), error);
    if (sent < 0 && error == EAGAIN) return await_writable(c, true);
    // The server may have answered (413) before it closed: what it said is read before the error counts. Reading reports it too.
    if (sent < 0) {
      c.phase = Phase::receiving;
      return await_writable(c, false);
    }
    c.written += static_cast<std::size_t>(sent);
  }
  const TimeNs now = loop_.now();
  c.phase = Phase::receiving;
  await_writable(c, false);
  if (request.sent != kUnknownTime) return;  // sent once more: the first instant stands
  request.sent = now;
  request.in_callback = true;
  request.sink->on_sent(now);
  request.in_callback = false;
  cancel_if_asked(c);
}

void Target::read_more(Connection& c) {
  while (true) {
    const TimeNs ready = loop_.now();
    const auto got = platform::receive(c.fd.get(), buffer_);
    if (got.bytes < 0 && got.error == EAGAIN) return;
    if (got.bytes < 0) return broke(c, got.error);
    if (got.bytes == 0) return peer_ended(c);
    const auto size = static_cast<std::size_t>(got.bytes);
    if (!take_bytes(c, std::string_view(buffer_.data(), size), arrival_of(c, got, ready))) return;
    if (size < buffer_.size()) return;  // readiness is level-triggered: more comes back
  }
}

/// The kernel's stamp where there is one, else the readiness; never before the request was sent or the read before this one.
TimeNs Target::arrival_of(const Connection& c, const platform::Received& got, TimeNs ready) {
  TimeNs arrived = ready;
  if (got.kernel_stamp == kUnknownTime) {
    ++stats_.unstamped_reads;
  } else {
    ++stats_.stamped_reads;
    arrived = stamp_clock_.to_monotonic(got.kernel_stamp, ready);
  }
  const TimeNs sent = c.request != nullptr && c.request->sent != kUnknownTime ? c.request->sent : arrived;
  return std::max({arrived, sent, c.last_arrived});
}

/// Parses one read; false when the connection is no longer reading this answer.
bool Target::take_bytes(Connection& c, std::string_view bytes, TimeNs arrived) {
  c.last_arrived = arrived;
  Request* const request = c.request;
  if (request != nullptr) {
    request->last_byte = arrived;
    request->in_callback = true;
    if (request->first_byte == kUnknownTime && request->sent != kUnknownTime) {
      request->first_byte = arrived;
      request->sink->on_first_byte(arrived);
    }
  }
  const std::size_t taken = c.assembler.feed(bytes, arrived);
  if (request != nullptr) request->in_callback = false;
  if (c.assembler.ended() || c.assembler.response_complete()) {
    settle(c, taken < bytes.size());
  } else {
    cancel_if_asked(c);
  }
  return c.phase == Phase::receiving || c.phase == Phase::sending || c.phase == Phase::draining;
}

/// The record is final, or the response has been read to its end. The connection is put in order before the sink hears of the end,
/// because the sink may submit the next request at once.
void Target::settle(Connection& c, bool leftover) {
  Request* const request = c.request;
  const bool done = c.assembler.ended() && c.assembler.summary().done_seen;
  const Outcome outcome = request != nullptr ? outcome_of(*request) : Outcome{};
  const bool all_sent = c.phase != Phase::sending && (request == nullptr || c.written == request->wire.size());
  c.request = nullptr;
  if (request != nullptr) request->connection = nullptr;
  if (c.assembler.response_complete() && c.assembler.reusable() && !leftover && all_sent) {
    loop_.cancel(c.timer);
    make_idle(c);
  } else if (!c.assembler.response_complete() && done && all_sent) {
    c.phase = Phase::draining;
    c.timer = loop_.at(loop_.now() + kDrainTime, [this, &c] {
      const Scope scope(*this);
      close(c);
    });
  } else {
    close(c);
  }
  if (request != nullptr) end(*request, outcome);
  serve_waiting();
  open_connections(Ahead::no);
}

/// The connection failed while a request was on it.
void Target::broke(Connection& c, int error) {
  if (c.request == nullptr) return close(c);
  if (!c.assembler.any_byte() && resend(c)) return;
  Request& request = *c.request;
  fail(request, ErrorClass::reset, fmt::format("the connection broke: {}", platform::errno_text(error)));
}

void Target::peer_ended(Connection& c) {
  if (c.request == nullptr) return close(c);
  if (!c.assembler.any_byte() && resend(c)) return;
  Request& request = *c.request;
  request.in_callback = true;
  c.assembler.finish();
  request.in_callback = false;
  const Outcome outcome = outcome_of(request);
  close(c);
  end(request, outcome);
  open_connections(Ahead::no);
}

/// A connection from the pool that turns out to be closed: the request waits, first in line, for another one. The idle ones have
/// most likely met the same end, so they go too.
bool Target::resend(Connection& c) {
  Request& request = *c.request;
  if (!c.pooled || request.resent) return false;
  request.resent = true;
  request.connection = nullptr;
  c.request = nullptr;
  ++stats_.resends;
  close(c);
  while (!idle_.empty()) close(*idle_.back());
  waiting_.push_front(&request);
  open_connections(Ahead::no);
  return true;
}

bool Target::cancel_if_asked(Connection& c) {
  if (c.request == nullptr || !c.request->cancelled) return false;
  Request& request = *c.request;
  fail(request, *request.cancelled, "cancelled by the client");
  return true;
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

/// Ends a request from our side, or by a broken connection. A failure that the answer itself told of before keeps its class.
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

/// One timer a request, looked at when it fires: sending and events do not touch it. It fires early enough for a limit that begins to
/// run later.
void Target::arm(Request& request) {
  const TimeNs now = loop_.now();
  const TimeNs at =
      std::min({next_deadline(request).first, after(now, options_.gap_timeout), after(now, options_.first_token_timeout)});
  if (at != kNever) request.deadline = loop_.at(at, [this, &request] { on_deadline(request); });
}

void Target::on_deadline(Request& request) {
  const Scope scope(*this);
  const auto [at, error] = next_deadline(request);
  if (loop_.now() < at) return arm(request);
  static constexpr auto kWords = [](ErrorClass c) {
    return c == ErrorClass::total_timeout ? "the answer was not complete" : c == ErrorClass::gap_timeout ? "nothing came any more"
                                                                                                         : "no token came";
  };
  const TimeNs limit = error == ErrorClass::total_timeout ? options_.total_timeout
                       : error == ErrorClass::gap_timeout ? options_.gap_timeout
                                                          : options_.first_token_timeout;
  fail(request, error, fmt::format("{} within {} s", kWords(error), to_seconds(limit)));
}

}  // namespace

std::unique_ptr<HttpTarget> make_http_target(HttpTargetOptions options, Loop& loop) {
  const Status valid = options.validate();
  TS_CHECK(valid.has_value(), valid ? "" : valid.error().message);
  return std::make_unique<Target>(std::move(options), loop);
}

}  // namespace tokenstone::loadgen
