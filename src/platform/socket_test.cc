#include "platform/socket.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "platform/real_loop.h"
#include "platform/stamp_clock.h"

namespace tokenstone::platform {
namespace {

struct Pair {
  Fd client, server;
};

Pair connected_pair() {
  const Fd listener = *listen_on("127.0.0.1", 0, 8);
  const auto addresses = *resolve("127.0.0.1", local_port(listener.get()));
  Pair pair;
  ConnectStart start = start_connect(addresses.front());
  EXPECT_EQ(start.error, 0);
  const TimeNs deadline = monotonic_now() + 60 * kSecond;
  EXPECT_TRUE(wait_for(start.fd.get(), true, deadline));
  EXPECT_EQ(connect_error(start.fd.get()), 0);
  EXPECT_TRUE(wait_for(listener.get(), false, deadline));
  int error = 0;
  pair.server = accept_connection(listener.get(), error);
  EXPECT_EQ(error, 0);
  pair.client = std::move(start.fd);
  return pair;
}

TEST(Socket, BytesGoThroughAndCarryAReceiveStampBetweenSendAndRead) {
  Pair pair = connected_pair();
  StampClock stamps;
  const TimeNs deadline = monotonic_now() + 60 * kSecond;
  // The kernel switches stamping on a moment after the first socket asked for it: the first packets may come without.
  int stamped = 0;
  for (int i = 0; i < 2000 && stamped < 3; ++i) {
    int error = 0;
    const TimeNs before = monotonic_now();
    ASSERT_EQ(send_some(pair.server.get(), "abc", error), 3);
    ASSERT_TRUE(wait_for(pair.client.get(), false, deadline));
    char buffer[16];
    const Received received = receive(pair.client.get(), buffer);
    const TimeNs now = monotonic_now();
    ASSERT_EQ(received.bytes, 3);
    if (received.kernel_stamp == kUnknownTime) continue;
    ++stamped;
    const TimeNs arrived = stamps.to_monotonic(received.kernel_stamp, now);
    // The conversion is known to within its brackets; the slack covers a wall clock that is being slewed.
    const TimeNs slack = stamps.worst_uncertainty_ns() + 50 * kMicrosecond;
    EXPECT_GE(arrived, before - slack);
    EXPECT_LE(arrived, now);
  }
  EXPECT_EQ(stamped, 3);
}

TEST(Socket, EndAndResetAreToldApart) {
  const TimeNs deadline = monotonic_now() + 60 * kSecond;
  char buffer[16];
  Pair ended = connected_pair();
  ended.server.reset();
  ASSERT_TRUE(wait_for(ended.client.get(), false, deadline));
  EXPECT_EQ(receive(ended.client.get(), buffer).bytes, 0);
  Pair reset = connected_pair();
  reset_on_close(reset.server.get());
  reset.server.reset();
  ASSERT_TRUE(wait_for(reset.client.get(), false, deadline));
  EXPECT_EQ(receive(reset.client.get(), buffer).error, ECONNRESET);
}

TEST(Socket, RefusedConnectionsSayWhy) {
  std::uint16_t port = 0;
  {
    const Fd listener = *listen_on("127.0.0.1", 0, 8);
    port = local_port(listener.get());
  }
  ConnectStart start = start_connect(resolve("127.0.0.1", port)->front());
  const int error = start.error != 0                                                 ? start.error
                    : wait_for(start.fd.get(), true, monotonic_now() + 60 * kSecond) ? connect_error(start.fd.get())
                                                                                     : -1;
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(Socket, APortInUseIsAnErrorWithAdvice) {
  const Fd listener = *listen_on("127.0.0.1", 0, 8);
  const auto second = listen_on("127.0.0.1", local_port(listener.get()), 8);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("choose another"), std::string::npos);
  EXPECT_FALSE(resolve("no-such-host.invalid", 80));
}

TEST(StampClock, AStampOfTheFutureBecomesNow) {
  StampClock stamps;
  const TimeNs now = monotonic_now();
  EXPECT_EQ(stamps.to_monotonic(wall_now() + 5 * kSecond, now), now);
}

}  // namespace
}  // namespace tokenstone::platform
