#include "base/result.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/types.h"

namespace tokenstone {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return usage_error("expected an even number", "value");
  return value / 2;
}

Result<int> quarter(int value) {
  TS_TRY(const int once, half(value));
  TS_TRY(const int twice, half(once));
  return twice;
}

Status only_even(int value) {
  TS_TRY_STATUS(half(value));
  return {};
}

TEST(Result, TryPassesValuesOnAndErrorsUp) {
  EXPECT_EQ(*quarter(12), 3);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::usage);
  EXPECT_EQ(failed.error().param, "value");
  EXPECT_TRUE(only_even(2));
  EXPECT_FALSE(only_even(3));
}

TEST(CheckDeathTest, AFailedCheckNamesItsConditionAndStops) {
  EXPECT_DEATH(TS_CHECK(1 + 1 == 3, "arithmetic"), "1 \\+ 1 == 3.*arithmetic");
}

TEST(Times, SecondsRoundToTheNearestNanosecond) {
  EXPECT_EQ(from_seconds(1.5e-9), 2);
  EXPECT_EQ(from_seconds(-1.0), -kSecond);
  EXPECT_DOUBLE_EQ(to_millis(1'500'000), 1.5);
}

}  // namespace
}  // namespace tokenstone
