#include "server/tcp.h"

#include <cerrno>

#include "platform/socket.h"

namespace tokenstone::server {
namespace {

constexpr int kBacklog = 4096;

IoState state_of(int error) { return error == EAGAIN || error == EWOULDBLOCK ? IoState::would_block : IoState::closed; }

}  // namespace

Result<Listener> listen_tcp(const std::string& host, std::uint16_t port) {
  TS_TRY(platform::Fd fd, platform::listen_on(host, port, kBacklog));
  Listener listener{.host = platform::local_host(fd.get()), .port = platform::local_port(fd.get())};
  listener.fd = fd.release();
  return listener;
}

Accepted accept_tcp(int listener) {
  while (true) {
    int error = 0;
    platform::Fd fd = platform::accept_connection(listener, error);
    if (fd.valid()) return {IoState::done, fd.release()};
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) return {IoState::no_descriptors, -1};
    return {IoState::would_block, -1};
  }
}

Transferred read_some(int fd, char* buffer, std::size_t capacity) {
  while (true) {
    const platform::Received got = platform::receive(fd, {buffer, capacity});
    if (got.bytes > 0) return {IoState::done, static_cast<std::size_t>(got.bytes)};
    if (got.bytes == 0) return {IoState::closed, 0};
    if (got.error != EINTR) return {state_of(got.error), 0};
  }
}

Transferred write_some(int fd, std::string_view bytes) {
  while (true) {
    int error = 0;
    const std::ptrdiff_t sent = platform::send_some(fd, bytes, error);
    if (sent >= 0) return {IoState::done, static_cast<std::size_t>(sent)};
    if (error != EINTR) return {state_of(error), 0};
  }
}

void shut_down_writing(int fd) { platform::shut_down_writing(fd); }
void close_descriptor(int fd) { platform::Fd(fd).reset(); }

}  // namespace tokenstone::server
