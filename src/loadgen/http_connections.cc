// The HTTP target's connections: set up, pooled, written to, read from.
#include <fmt/format.h>

#include <cerrno>

#include "loadgen/http_target_state.h"

namespace tokenstone::loadgen::http_target_detail {
namespace {

/// How long an answer that has ended with [DONE] may still owe the end of its response before its connection is given
/// up.
constexpr TimeNs kDrainTime = 250 * kMillisecond;

static_assert(static_cast<int>(http::DeltaKind::tool_call) == static_cast<int>(record::TokenKind::tool_call),
              "on_token converts one into the other");

}  // namespace

void Connection::on_token(const http::StreamToken& token, std::string_view text) {
  if (request == nullptr) return;
  request->token_seen = true;
  request->sink->on_tokens({.arrived = token.arrived,
                            .parsed = loop.now(),
                            .tokens = token.tokens,
                            .kind = static_cast<record::TokenKind>(token.kind),
                            .shared_stamp = token.shared_stamp},
                           text);
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

/// A name may have several addresses (::1 and 127.0.0.1) of which the server uses one: the next is tried while none has
/// worked. Else one failed set-up fails one request, unless enough other set-ups are under way.
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
    case Phase::connecting:
      return connected(c);
    case Phase::idle:
      return close(c);  // the server closed it, or sent bytes that nobody asked for
    case Phase::closed:
      return;
    default:
      break;
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
    // The server may have answered (413) before it closed: what it said is read before the error counts. Reading
    // reports it too.
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

/// The kernel's stamp where there is one, else the readiness; never before the request was sent or the read before this
/// one.
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

/// The record is final, or the response has been read to its end. The connection is put in order before the sink hears
/// of the end, because the sink may submit the next request at once.
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

/// A connection from the pool that turns out to be closed: the request waits, first in line, for another one. The idle
/// ones have most likely met the same end, so they go too.
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

}  // namespace tokenstone::loadgen::http_target_detail
