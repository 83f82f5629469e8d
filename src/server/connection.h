// One client's connection: requests out of its bytes, answers into its socket, in order.
//
// A request is handed to the owner when its body is whole; until the owner calls end_answer(), bytes that follow are
// only kept (up to a bound, after which the socket is not read). Answers are appended to out() and written by flush():
// what was appended since the last flush is one write. A peer that closes its side is gone: its answer is not wanted
// any more. After an answer that closes, the rest of what the peer sends is read and dropped, so that the answer is not
// lost to a reset. Ownership: the owner holds it and destroys it after on_gone, outside of its calls. Threads: the I/O
// loop's. Failure: none to the caller; whatever ends the connection is reported by on_gone, once.
#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "http/request_parser.h"

namespace tokenstone::server {

class Connection;

class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void on_request(Connection& connection, http::Request& request) = 0;
  /// Must answer and call end_answer(close).
  virtual void on_bad_request(Connection& connection, const http::RequestError& error) = 0;
  /// The last bytes of an answer that closes are with the kernel.
  virtual void on_finished(Connection& connection) = 0;
  virtual void on_gone(Connection& connection) = 0;
};

class Connection {
 public:
  Connection(Loop& loop, int fd, http::RequestLimits limits, ConnectionOwner& owner);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::string& out() { return out_; }
  std::size_t unsent() const { return out_.size() - sent_; }
  void flush();
  enum class After { keep, close };
  /// The answer to the current request is in out(); goes on with the next request, if one is there already.
  void end_answer(After after);
  /// Takes no further request; ends when what is in out() is sent. Precondition: no answer is under way.
  void close_when_sent();
  /// Drops everything; the owner is told.
  void abandon();
  /// No request is being received or answered.
  bool idle() const { return !busy_ && !parser_.in_message() && in_.empty() && unsent() == 0; }
  /// Nothing of an answer is left to do (what remains is waiting for the peer to close).
  bool finished() const { return gone_ || (closing_ && unsent() == 0); }
  bool busy() const { return busy_; }
  bool gone() const { return gone_; }
  TimeNs last_activity() const { return last_activity_; }

 private:
  void on_ready(Readiness ready);
  void read_more();
  void advance();
  void update_interest();

  // fixed after construction
  Loop& loop_;
  int fd_;
  ConnectionOwner& owner_;
  // I/O thread only
  http::RequestParser parser_;
  std::string in_, out_;
  std::size_t sent_ = 0, dropped_ = 0;
  TimeNs last_activity_ = 0;
  Readiness interest_{.readable = true};
  bool busy_ = false, advancing_ = false, blocked_ = false, closing_ = false, shut_ = false, gone_ = false;
};

}  // namespace tokenstone::server
