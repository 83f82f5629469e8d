#include "base/virtual_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.h"

namespace tokenstone {
namespace {

TEST(VirtualLoop, RunsInstantsInOrderOfTimeThenOfSetting) {
  VirtualLoop loop;
  std::vector<int> order;
  loop.at(20, [&] { order.push_back(3); });
  loop.at(10, [&] { order.push_back(1); });
  loop.at(10, [&] { order.push_back(2); });
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(loop.now(), 20);
}

TEST(VirtualLoop, TimeMovesToTheLimitWhenTheNextInstantIsLater) {
  VirtualLoop loop;
  bool ran = false;
  loop.at(100, [&] { ran = true; });
  loop.run_until(50);
  EXPECT_FALSE(ran);
  EXPECT_EQ(loop.now(), 50);
  loop.run_until(100);
  EXPECT_TRUE(ran);
}

TEST(VirtualLoop, AnInstantInThePastRunsNow) {
  VirtualLoop loop;
  loop.run_until(50);
  TimeNs seen = 0;
  loop.at(10, [&] { seen = loop.now(); });
  loop.run();
  EXPECT_EQ(seen, 50);
}

TEST(VirtualLoop, StopEndsAfterTheRunningCallbackAndKeepsTheRest) {
  VirtualLoop loop;
  int ran = 0;
  loop.at(1, [&] {
    ++ran;
    loop.stop();
  });
  loop.at(2, [&] { ++ran; });
  loop.run();
  EXPECT_EQ(ran, 1);
  loop.run();
  EXPECT_EQ(ran, 2);
}

TEST(VirtualLoop, ACancelledTimerNeverRunsAndItsCallbackIsDestroyedAtOnce) {
  VirtualLoop loop;
  auto held = std::make_shared<int>(0);
  const TimerId timer = loop.at(10, [held] { ++*held; });
  EXPECT_EQ(held.use_count(), 2);
  loop.cancel(timer);
  EXPECT_EQ(held.use_count(), 1);
  loop.run();
  EXPECT_EQ(*held, 0);
}

TEST(VirtualLoop, TheIdOfATimerThatHasRunNamesNoLaterOne) {
  VirtualLoop loop;
  int ran = 0;
  const TimerId first = loop.at(1, [&] { ++ran; });
  loop.run();
  loop.at(2, [&] { ++ran; });  // takes the same slot
  loop.cancel(first);
  loop.run();
  EXPECT_EQ(ran, 2);
}

TEST(VirtualLoop, ACallbackMayCancelAnotherOfTheSameInstantAndItself) {
  VirtualLoop loop;
  int ran = 0;
  TimerId first, second;
  first = loop.at(5, [&] {
    ++ran;
    loop.cancel(first);
    loop.cancel(second);
  });
  second = loop.at(5, [&] { ran += 100; });
  loop.run();
  EXPECT_EQ(ran, 1);
}

// The count that makes cancel O(1) amortised: emptied entries never become the larger part of the heap.
TEST(VirtualLoop, CancelledTimersDoNotPileUp) {
  VirtualLoop loop;
  for (int i = 0; i < 100'000; ++i) loop.cancel(loop.at(1'000'000 + i, [] {}));
  EXPECT_LE(loop.heap_size(), 66u);
  loop.run();
  EXPECT_EQ(loop.now(), 0) << "a cancelled instant must not move time";
}

TEST(VirtualLoop, RandomTimersAndCancellationsMatchAPlainList) {
  VirtualLoop loop;
  Rng rng(7, streams::arrivals);
  std::vector<int> ran, expected;
  struct Planned {
    TimeNs t;
    int name;
    TimerId timer;
  };
  std::vector<Planned> planned;
  for (int i = 0; i < 5'000; ++i) {
    const TimeNs t = rng.uniform_int(0, 500);
    planned.push_back({t, i, loop.at(t, [&ran, i] { ran.push_back(i); })});
    if (rng.uniform() < 0.6) {
      const auto victim = static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(planned.size()) - 1));
      loop.cancel(planned[victim].timer);
      planned.erase(planned.begin() + static_cast<std::ptrdiff_t>(victim));
    }
  }
  std::stable_sort(planned.begin(), planned.end(), [](const Planned& a, const Planned& b) { return a.t < b.t; });
  for (const Planned& p : planned) expected.push_back(p.name);
  loop.run();
  EXPECT_EQ(ran, expected);
}

}  // namespace
}  // namespace tokenstone
