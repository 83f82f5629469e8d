// TCP sockets: the system calls of the client and of the servers, non-blocking throughout.
//
// Ownership: Fd closes its descriptor. Threads: any, one at a time for each socket. Units: bytes; stamps in wall-clock
// ns. Failure: as values: an Error with what to do next for resolving and listening, an errno for what happens on a
// connection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::platform {

/// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// A resolved address; opaque bytes of a sockaddr.
struct SocketAddress {
  std::vector<std::byte> bytes;
  std::string text;  ///< "127.0.0.1:8000"
};

/// All addresses of a name, in the system's order of preference. Blocks: before a run only.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);

struct ConnectStart {
  Fd fd;          ///< invalid when `error` is set
  int error = 0;  ///< errno
  bool done = false;
};
/// Starts a connection with TCP_NODELAY and kernel receive stamps; when not `done`, writability says that
/// `connect_error` tells.
ConnectStart start_connect(const SocketAddress& address);
/// The result of a started connection: 0 or an errno.
int connect_error(int fd);

/// Listens on host:port, port 0 for a free one (see local_port).
Result<Fd> listen_on(const std::string& host, std::uint16_t port, int backlog);
std::uint16_t local_port(int fd);
/// The numeric address that a socket is bound to.
std::string local_host(int fd);
/// A waiting connection (non-blocking, TCP_NODELAY), or an invalid Fd with `error` (EAGAIN: none waits).
Fd accept_connection(int listener, int& error);

struct Received {
  std::ptrdiff_t bytes = 0;  ///< 0: the peer ended; negative: `error`
  int error = 0;
  TimeNs kernel_stamp = kUnknownTime;  ///< wall clock; of the segment that brought the last byte of this read
};
/// One recvmsg with the kernel's receive stamp.
Received receive(int fd, std::span<char> into);
/// One send without SIGPIPE; bytes taken, or a negative value with `error`.
std::ptrdiff_t send_some(int fd, std::string_view bytes, int& error);

/// Tells the peer that nothing more will be sent; reading goes on.
void shut_down_writing(int fd);
/// Makes the close of `fd` send a reset.
void reset_on_close(int fd);
/// Waits until readable or writable, or `deadline` (monotonic) passes; false then.
bool wait_for(int fd, bool writable, TimeNs deadline);

/// The system's word for an errno.
std::string errno_text(int error);

}  // namespace tokenstone::platform
