#include "server/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tokenstone::server {
namespace {

constexpr int kBacklog = 4096;

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressDeleter>;

Result<AddressList> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code == 0) return AddressList(list);
  return usage_error(
      fmt::format("--host {} is no address of this machine ({}); use 127.0.0.1 or 0.0.0.0", host, gai_strerror(code)),
      "host");
}

void describe(int fd, Listener& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    listener.port = ntohs(v6.sin6_port);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    listener.port = ntohs(v4.sin_port);
  }
  listener.host = text;
}

Error listen_error(const std::string& host, std::uint16_t port, int code) {
  if (code == EADDRINUSE)
    return {ErrorKind::usage,
            fmt::format(
                "port {} of {} is in use by another program; stop it, or choose another with --port (0: any free one)",
                port, host),
            "port"};
  return {ErrorKind::usage,
          fmt::format("cannot listen on {}:{}: {}; choose another --host or --port", host, port, std::strerror(code)),
          "port"};
}

}  // namespace

Result<Listener> listen_tcp(const std::string& host, std::uint16_t port) {
  TS_TRY(const AddressList addresses, resolve(host, port));
  int last_error = EADDRNOTAVAIL;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      last_error = errno;
      continue;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) {
      Listener listener{.fd = fd};
      describe(fd, listener);
      return listener;
    }
    last_error = errno;
    close(fd);
  }
  return std::unexpected(listen_error(host, port, last_error));
}

Accepted accept_tcp(int listener) {
  while (true) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return {IoState::done, fd};
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) return {IoState::no_descriptors, -1};
    return {IoState::would_block, -1};
  }
}

Transferred read_some(int fd, char* buffer, std::size_t capacity) {
  while (true) {
    const ssize_t got = recv(fd, buffer, capacity, 0);
    if (got > 0) return {IoState::done, static_cast<std::size_t>(got)};
    if (got == 0) return {IoState::closed, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoState::would_block, 0};
    return {IoState::closed, 0};
  }
}

Transferred write_some(int fd, std::string_view bytes) {
  while (true) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {IoState::done, static_cast<std::size_t>(sent)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoState::would_block, 0};
    return {IoState::closed, 0};
  }
}

void shut_down_writing(int fd) { shutdown(fd, SHUT_WR); }
void close_descriptor(int fd) { close(fd); }

}  // namespace tokenstone::server
