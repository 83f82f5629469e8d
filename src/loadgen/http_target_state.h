// Inside of the HTTP target (http_target.h), shared by its two files: requests and their ends (http_target.cc),
// connections and bytes (http_connections.cc). Nobody else includes it.
//
// Ownership: the target owns requests and connections; a connection that was closed is kept until no code of it can be
// running. Threads: the loop's. Units: ns.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/stream_assembler.h"
#include "http/url.h"
#include "loadgen/http_target.h"
#include "platform/socket.h"
#include "platform/stamp_clock.h"

namespace tokenstone::loadgen::http_target_detail {

using record::ErrorClass;
using runtime::Outcome;
using runtime::RequestSink;
using runtime::RequestSpec;

/// start + limit without overflow.
inline TimeNs after(TimeNs start, TimeNs limit) { return limit > kNever - start ? kNever : start + limit; }

struct Connection;

/// One submitted request until its end.
struct Request {
  Ticket ticket;
  RequestSink* sink = nullptr;
  std::string wire;  ///< the whole request as it is sent
  TimeNs submitted = 0;
  TimeNs sent = kUnknownTime;
  TimeNs first_byte = kUnknownTime;
  TimeNs last_byte = kUnknownTime;
  TimeNs connect_ns = kUnknownTime;
  bool token_seen = false;
  bool resent = false;
  bool in_callback = false;  ///< its sink is being called: a cancel waits until that returns
  std::optional<ErrorClass> cancelled;
  Connection* connection = nullptr;  ///< null while it waits for one
  TimerId deadline;
};

enum class Phase { connecting, idle, sending, receiving, draining, closed };

/// One socket. The observer of its answers, which it passes on to the request it serves.
struct Connection final : http::StreamObserver {
  Connection(const Loop& loop_in, http::AssemblerOptions options) : loop(loop_in), assembler(*this, options) {}

  void on_token(const http::StreamToken& token, std::string_view text) override;

  const Loop& loop;
  platform::Fd fd;
  Phase phase = Phase::connecting;
  std::size_t address = 0;  ///< which of the host's addresses
  TimeNs connect_started = 0;
  bool pooled = false;  ///< was idle before it got its request
  Request* request = nullptr;
  std::size_t written = 0;
  bool awaits_writable = true;  ///< what the loop watches for, beside readable
  TimeNs last_arrived = 0;
  TimerId timer;  ///< set-up or drain
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
  std::vector<Connection*> idle_;  ///< the most recently used last, which is taken first
  std::deque<Request*> waiting_;   ///< for a connection
  std::size_t connecting_ = 0;
  std::size_t ahead_ = 0;  ///< connections that stand ready or in use at least
  std::vector<std::unique_ptr<Connection>> dead_;
  int depth_ = 0;
  std::uint64_t next_ticket_ = 1;
  std::vector<char> buffer_ = std::vector<char>(64 * 1024);
  platform::StampClock stamp_clock_;
  HttpTargetStats stats_;
  /// Set-ups that failed at once; they are reported from the loop, never inside `submit`.
  std::vector<std::pair<std::size_t, int>> failed_at_once_;
  TimerId failed_timer_;
};

}  // namespace tokenstone::loadgen::http_target_detail
