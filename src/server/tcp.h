// What a server wants of platform/socket.h: listen, accept, read and write, with retries and a plain word for each end.
// Failure: a Result for what a person can mend (address in use, bad host), a plain enum for what happens to a
// connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tokenstone::server {

struct Listener {
  int fd = -1;
  std::string host;        ///< as bound, numeric
  std::uint16_t port = 0;  ///< the real one when 0 was asked
};

/// Binds to a numeric address or a name ("localhost"). Port 0: any free one.
Result<Listener> listen_tcp(const std::string& host, std::uint16_t port);

enum class IoState { done, would_block, closed, no_descriptors };
struct Accepted {
  IoState state = IoState::would_block;
  int fd = -1;
};
/// One waiting connection, with small segments sent at once (TCP_NODELAY).
Accepted accept_tcp(int listener);

struct Transferred {
  IoState state = IoState::would_block;
  std::size_t bytes = 0;
};
Transferred read_some(int fd, char* buffer, std::size_t capacity);
Transferred write_some(int fd, std::string_view bytes);
void shut_down_writing(int fd);
void close_descriptor(int fd);

}  // namespace tokenstone::server
