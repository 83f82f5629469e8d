#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tokenstone {
namespace {

// Known answers of the authors' distribution (Random123, kat_vectors: philox 4x32, 10 rounds).
TEST(Philox, MatchesTheAuthorsKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, StreamsDifferAndSeedsRepeat) {
  Rng a(1, streams::arrivals), same(1, streams::arrivals), other(1, streams::lengths);
  bool differs = false;
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t value = a.next_u32();
    EXPECT_EQ(value, same.next_u32());
    differs = differs || value != other.next_u32();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, UniformIntReachesBothEndsAndNothingElse) {
  Rng rng(3, streams::lengths);
  std::map<std::int64_t, int> seen;
  for (int i = 0; i < 6'000; ++i) ++seen[rng.uniform_int(-2, 3)];
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen.begin()->first, -2);
  EXPECT_EQ(seen.rbegin()->first, 3);
  for (const auto& [value, count] : seen) EXPECT_NEAR(count, 1'000, 200) << value;
}

// Bounds are 5 standard errors of the mean and variance estimates over n draws.
TEST(Rng, MomentsOfTheDistributions) {
  constexpr int n = 200'000;
  Rng rng(11, streams::arrivals);
  double exponential = 0, normal = 0, normal2 = 0, gamma = 0;
  for (int i = 0; i < n; ++i) {
    exponential += rng.exponential();
    const double z = rng.normal();
    normal += z;
    normal2 += z * z;
    gamma += rng.gamma(0.5);
  }
  EXPECT_NEAR(exponential / n, 1.0, 5 / std::sqrt(n));
  EXPECT_NEAR(normal / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(normal2 / n, 1.0, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(gamma / n, 0.5, 5 * std::sqrt(0.5 / n));
}

TEST(Rng, UniformAtIsAFunctionOfItsArgumentsAlone) {
  EXPECT_EQ(uniform_at(5, streams::sampling, 9), uniform_at(5, streams::sampling, 9));
  EXPECT_NE(uniform_at(5, streams::sampling, 9), uniform_at(5, streams::sampling, 10));
  EXPECT_NE(uniform_at(5, streams::sampling, 9), uniform_at(6, streams::sampling, 9));
}

}  // namespace
}  // namespace tokenstone
