#include "platform/real_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace tokenstone::platform {
namespace {

TEST(RealLoop, RunsTimersInOrderOfInstantAndOfSetting) {
  auto loop = make_real_loop();
  std::string order;
  const TimeNs t = loop->now();
  loop->at(t + 2000, [&] { order += 'c'; });
  loop->at(t + 1000, [&] { order += 'a'; });
  loop->at(t + 1000, [&] { order += 'b'; });
  loop->at(t + 3000, [&] { loop->stop(); });
  loop->run();
  EXPECT_EQ(order, "abc");
}

TEST(RealLoop, NeverRunsATimerEarly) {
  auto loop = make_real_loop();
  const TimeNs due = loop->now() + 300'000;
  TimeNs ran = 0;
  loop->at(due, [&] {
    ran = loop->now();
    loop->stop();
  });
  loop->run();
  EXPECT_GE(ran, due);
}

TEST(RealLoop, ForgetsCancelledTimers) {
  auto loop = make_real_loop();
  bool ran = false;
  const TimerId timer = loop->at(loop->now(), [&] { ran = true; });
  loop->cancel(timer);
  loop->at(loop->now(), [&] { loop->stop(); });
  loop->run();
  EXPECT_FALSE(ran);
}

TEST(RealLoop, RunsPostedFunctionsFromOtherThreadsInOrder) {
  auto loop = make_real_loop();
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) loop->post([&seen, i] { seen.push_back(i); });
    loop->post([&] { loop->stop(); });
  });
  loop->run();
  poster.join();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(RealLoop, ACallbackMayUnwatchItsOwnFd) {
  auto loop = make_real_loop();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int calls = 0;
  loop->watch(ends[0], Readiness{.readable = true}, [&](Readiness ready) {
    EXPECT_TRUE(ready.readable);
    ++calls;
    loop->unwatch(ends[0]);
    loop->stop();
  });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  loop->run();
  loop->run_until(loop->now());
  EXPECT_EQ(calls, 1);
  close(ends[0]);
  close(ends[1]);
}

TEST(RealLoop, AStopBeforeTheRunIsNotLost) {
  auto loop = make_real_loop();
  loop->stop();
  loop->run();  // returns at once, or the test hangs
}

}  // namespace
}  // namespace tokenstone::platform
