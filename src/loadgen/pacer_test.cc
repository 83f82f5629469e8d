#include "loadgen/pacer.h"

#include <gtest/gtest.h>

namespace tokenstone::loadgen {
namespace {

std::vector<Pacer::Due> poll(Pacer& pacer, TimeNs now) {
  std::vector<Pacer::Due> due;
  pacer.poll(now, due);
  return due;
}

TEST(Pacer, SendsAtTheInstantsOfTheSchedule) {
  Pacer pacer({.intended = {10, 20, 20, 35}});
  EXPECT_EQ(pacer.next_deadline(), 10);
  EXPECT_TRUE(poll(pacer, 9).empty());
  EXPECT_EQ(poll(pacer, 10).size(), 1u);
  EXPECT_EQ(pacer.next_deadline(), 20);
  EXPECT_EQ(poll(pacer, 20).size(), 2u);
  EXPECT_FALSE(pacer.exhausted(20));
  EXPECT_EQ(poll(pacer, 35).size(), 1u);
  EXPECT_TRUE(pacer.exhausted(35));
  EXPECT_EQ(pacer.next_deadline(), kNever);
}

// ARR-01: the schedule is absolute; being late once does not move what follows.
TEST(Pacer, LatenessDoesNotMoveTheSchedule) {
  Pacer pacer({.intended = {10, 20, 30}});
  const auto late = poll(pacer, 25);
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].intended, 10);
  EXPECT_EQ(late[1].intended, 20);
  EXPECT_FALSE(late[0].waited_for_slot);
  EXPECT_EQ(pacer.next_deadline(), 30);
}

// ARR-02: 10/s, service 500 ms, cap 1: the wait in the client stays visible in `intended`.
TEST(Pacer, ACapHoldsBackAndKeepsTheIntendedInstant) {
  Pacer pacer({.intended = {100, 200, 300}, .max_concurrency = 1});
  EXPECT_EQ(poll(pacer, 100).size(), 1u);
  EXPECT_TRUE(poll(pacer, 200).empty());
  EXPECT_EQ(pacer.next_deadline(), kNever);
  pacer.on_finished(600);
  const auto second = poll(pacer, 600);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].intended, 200);
  EXPECT_TRUE(second[0].waited_for_slot);
  pacer.on_finished(1100);
  const auto third = poll(pacer, 1100);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].intended, 300);
  EXPECT_TRUE(third[0].waited_for_slot);
}

TEST(Pacer, AClosedLoopIntendsAtTheInstantTheSlotBecameFree) {
  Pacer pacer({.closed_loop = true, .total = 4, .max_concurrency = 2});
  const auto first = poll(pacer, 3);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].intended, 0);
  EXPECT_TRUE(poll(pacer, 50).empty());
  pacer.on_finished(60);
  const auto next = poll(pacer, 61);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].intended, 60);
  EXPECT_EQ(next[0].index, 2u);
  pacer.on_finished(70);
  EXPECT_EQ(poll(pacer, 70).size(), 1u);
  EXPECT_TRUE(pacer.exhausted(70));
}

TEST(Pacer, ByDurationNothingIsSentAfterTheEnd) {
  Pacer open({.intended = {10, 20, 30}, .stop_at = 25});
  EXPECT_EQ(poll(open, 20).size(), 2u);
  EXPECT_TRUE(poll(open, 30).empty());
  EXPECT_TRUE(open.exhausted(30));
  Pacer closed({.closed_loop = true, .total = UINT64_MAX, .max_concurrency = 1, .stop_at = 100});
  EXPECT_EQ(poll(closed, 0).size(), 1u);
  closed.on_finished(100);
  EXPECT_TRUE(poll(closed, 100).empty());
}

// ARR-07: what a stage could not send is not carried into the next one.
TEST(Pacer, AStagesUnsentRequestsExpireWithIt) {
  Pacer pacer({.intended = {10, 20, 110}, .expires = {100, 100, 200}, .max_concurrency = 1});
  EXPECT_EQ(poll(pacer, 10).size(), 1u);
  EXPECT_TRUE(poll(pacer, 20).empty());
  EXPECT_EQ(pacer.next_deadline(), 100);
  pacer.on_finished(105);
  EXPECT_TRUE(poll(pacer, 105).empty());
  const auto next = poll(pacer, 110);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].index, 2u);
  EXPECT_FALSE(next[0].waited_for_slot);
  EXPECT_EQ(pacer.issued(), 2u);
}

TEST(Pacer, AStopLeavesTheRestUnsent) {
  Pacer pacer({.intended = {10, 20}});
  pacer.stop();
  EXPECT_TRUE(poll(pacer, 50).empty());
  EXPECT_TRUE(pacer.exhausted(0));
}

}  // namespace
}  // namespace tokenstone::loadgen
