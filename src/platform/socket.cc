#include "platform/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "platform/real_loop.h"

namespace tokenstone::platform {
namespace {

void set_option(int fd, int level, int option) {
  const int on = 1;
  setsockopt(fd, level, option, &on, sizeof on);
}

const sockaddr* as_sockaddr(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(address.bytes.data());
}

std::string address_text(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return address->sa_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<std::vector<SocketAddress>> look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0) {
    return fail(ErrorKind::unreachable, fmt::format("cannot find the address of host '{}' ({}); check its spelling",
                                                    host, gai_strerror(problem)));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* item = found; item != nullptr; item = item->ai_next) {
    const auto* bytes = reinterpret_cast<const std::byte*>(item->ai_addr);
    addresses.push_back({{bytes, bytes + item->ai_addrlen}, address_text(item->ai_addr, item->ai_addrlen)});
  }
  freeaddrinfo(found);
  return addresses;
}

/// The receive stamp among the control messages.
TimeNs stamp_of(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp;
    std::memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
    return stamp.tv_sec * kSecond + stamp.tv_nsec;
  }
  return kUnknownTime;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port) {
  return look_up(host, port, 0);
}

ConnectStart start_connect(const SocketAddress& address) {
  ConnectStart start;
  start.fd = Fd(::socket(as_sockaddr(address)->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!start.fd.valid()) {
    start.error = errno;
    return start;
  }
  set_option(start.fd.get(), IPPROTO_TCP, TCP_NODELAY);
  set_option(start.fd.get(), SOL_SOCKET, SO_TIMESTAMPNS);
  if (::connect(start.fd.get(), as_sockaddr(address), static_cast<socklen_t>(address.bytes.size())) == 0) {
    start.done = true;
  } else if (errno != EINPROGRESS) {
    start.error = errno;
    start.fd.reset();
  }
  return start;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

Result<Fd> listen_on(const std::string& host, std::uint16_t port, int backlog) {
  TS_TRY(const auto addresses, look_up(host, port, AI_PASSIVE));
  int error = 0;
  for (const SocketAddress& address : addresses) {
    Fd fd(::socket(as_sockaddr(address)->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) {
      error = errno;
      continue;
    }
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
    const auto size = static_cast<socklen_t>(address.bytes.size());
    if (::bind(fd.get(), as_sockaddr(address), size) == 0 && ::listen(fd.get(), backlog) == 0) return fd;
    error = errno;
  }
  if (error == EADDRINUSE)
    return usage_error(fmt::format("port {} of {} is in use by another program; stop it, or choose another with --port "
                                   "(0: any free one)",
                                   port, host),
                       "port");
  return usage_error(
      fmt::format("cannot listen on {}:{} ({}); choose another --host or --port", host, port, errno_text(error)),
      "port");
}

std::string local_host(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = address.ss_family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  return inet_ntop(address.ss_family, bytes, text, sizeof text) == nullptr ? "" : text;
}

std::uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Fd accept_connection(int listener, int& error) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  error = fd.valid() ? 0 : errno;
  if (fd.valid()) set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  return fd;
}

Received receive(int fd, std::span<char> into) {
  iovec part{into.data(), into.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec)) + 64];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  Received received;
  do {
    received.bytes = ::recvmsg(fd, &message, 0);
  } while (received.bytes < 0 && errno == EINTR);
  if (received.bytes < 0) received.error = errno;
  if (received.bytes > 0) received.kernel_stamp = stamp_of(message);
  return received;
}

std::ptrdiff_t send_some(int fd, std::string_view bytes, int& error) {
  std::ptrdiff_t sent;
  do {
    sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  error = sent < 0 ? errno : 0;
  return sent;
}

void shut_down_writing(int fd) { ::shutdown(fd, SHUT_WR); }

void reset_on_close(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool wait_for(int fd, bool writable, TimeNs deadline) {
  pollfd item{.fd = fd, .events = static_cast<short>(writable ? POLLOUT : POLLIN), .revents = 0};
  while (true) {
    const TimeNs left = deadline - monotonic_now();
    if (left <= 0) return false;
    const timespec wait{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
    const int ready = ::ppoll(&item, 1, &wait, nullptr);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::string errno_text(int error) { return std::system_category().message(error); }

}  // namespace tokenstone::platform
