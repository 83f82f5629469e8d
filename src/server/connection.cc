#include "server/connection.h"

#include "base/check.h"
#include "server/tcp.h"

namespace tokenstone::server {
namespace {

constexpr std::size_t kReadSize = 64 << 10;
constexpr std::size_t kMaxPipelinedBytes = 1 << 20;  // kept while an answer is on its way
constexpr std::size_t kMaxUnsentAnswers = 1 << 20;   // no further request is begun above this
constexpr std::size_t kMaxDropped = 64 << 20;        // read and thrown away after a closing answer

}  // namespace

Connection::Connection(Loop& loop, int fd, http::RequestLimits limits, ConnectionOwner& owner)
    : loop_(loop), fd_(fd), owner_(owner), parser_(limits), last_activity_(loop.now()) {
  loop_.watch(fd_, interest_, [this](Readiness ready) { on_ready(ready); });
}

Connection::~Connection() {
  if (gone_) return;
  loop_.unwatch(fd_);
  close_descriptor(fd_);
}

void Connection::abandon() {
  if (gone_) return;
  gone_ = true;
  loop_.unwatch(fd_);
  close_descriptor(fd_);
  owner_.on_gone(*this);
}

void Connection::on_ready(Readiness ready) {
  if (gone_) return;
  if (ready.writable) {
    flush();
    if (!gone_ && !blocked_) advance();
  }
  if (gone_) return;
  if (ready.readable) return read_more();
  if (ready.hangup) abandon();
}

void Connection::read_more() {
  char buffer[kReadSize];
  const Transferred got = read_some(fd_, buffer, sizeof buffer);
  if (got.state == IoState::would_block) return;
  if (got.state != IoState::done) return abandon();
  last_activity_ = loop_.now();
  if (closing_) {
    dropped_ += got.bytes;
    if (dropped_ > kMaxDropped) abandon();
    return;
  }
  in_.append(buffer, got.bytes);
  advance();
  flush();
}

/// Takes requests out of what was read, one after another, as long as each is answered at once.
void Connection::advance() {
  if (advancing_) return;  // end_answer() from within on_request: the loop below goes on
  advancing_ = true;
  while (!busy_ && !closing_ && !gone_ && !in_.empty() && unsent() <= kMaxUnsentAnswers) {
    in_.erase(0, parser_.feed(in_));
    if (parser_.take_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    if (parser_.error()) {
      busy_ = true;
      owner_.on_bad_request(*this, *parser_.error());
    } else if (parser_.complete()) {
      busy_ = true;
      owner_.on_request(*this, parser_.request());
    }
  }
  advancing_ = false;
  if (!gone_) update_interest();
}

void Connection::end_answer(After after) {
  if (gone_) return;
  TS_CHECK(busy_, "an answer without a request");
  busy_ = false;
  if (after == After::close || parser_.error()) {
    closing_ = true;
    in_.clear();
  } else {
    parser_.next();
    advance();
  }
}

void Connection::close_when_sent() {
  TS_CHECK(!busy_, "an answer is under way");
  closing_ = true;
  in_.clear();
  flush();
}

void Connection::flush() {
  while (!gone_ && unsent() > 0) {
    const Transferred sent = write_some(fd_, std::string_view(out_).substr(sent_));
    if (sent.state == IoState::closed) return abandon();
    blocked_ = sent.state == IoState::would_block;
    if (blocked_) return update_interest();
    sent_ += sent.bytes;
    last_activity_ = loop_.now();
  }
  if (gone_) return;
  if (out_.capacity() > kMaxUnsentAnswers) out_ = {};
  out_.clear();
  sent_ = 0;
  blocked_ = false;
  update_interest();
  if (!closing_ || std::exchange(shut_, true)) return;
  shut_down_writing(fd_);
  owner_.on_finished(*this);
}

void Connection::update_interest() {
  const bool wants_bytes = closing_ || (in_.size() < kMaxPipelinedBytes && unsent() <= kMaxUnsentAnswers);
  const Readiness wanted{.readable = wants_bytes, .writable = blocked_};
  if (wanted.readable == interest_.readable && wanted.writable == interest_.writable) return;
  interest_ = wanted;
  loop_.rewatch(fd_, interest_);
}

}  // namespace tokenstone::server
