#include "kernels/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tokenstone::kernels {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 3.0f, -1.0f, 2.0f, 0.0f};

std::map<TokenId, double> frequencies(SampleSettings settings, int draws = 20000) {
  Sampler sampler(default_kernels());
  std::map<TokenId, double> counts;
  for (int i = 0; i < draws; ++i) {
    settings.position = static_cast<std::uint64_t>(i);
    counts[sampler.sample(kLogits, settings)] += 1.0 / draws;
  }
  return counts;
}

/// The drawn tokens are just `kept`, each as often as its share; 20,000 draws: five standard errors are below 0.018.
void expect_distribution(const std::map<TokenId, double>& drawn, const std::vector<TokenId>& kept, double temperature) {
  double total = 0;
  for (const TokenId id : kept) total += std::exp(kLogits[static_cast<std::size_t>(id)] / temperature);
  EXPECT_EQ(drawn.size(), kept.size());
  for (const TokenId id : kept) {
    ASSERT_TRUE(drawn.contains(id)) << id;
    EXPECT_NEAR(drawn.at(id), std::exp(kLogits[static_cast<std::size_t>(id)] / temperature) / total, 0.018) << id;
  }
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  Sampler sampler(default_kernels());
  EXPECT_EQ(sampler.sample(kLogits, {.temperature = 0}), 1);
}

TEST(Sampler, TemperatureShapesTheDistribution) {
  expect_distribution(frequencies({.temperature = 1}), {0, 1, 2, 3, 4, 5}, 1);
  expect_distribution(frequencies({.temperature = 2}), {0, 1, 2, 3, 4, 5}, 2);
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  expect_distribution(frequencies({.temperature = 1, .top_k = 3}), {1, 2, 4}, 1);
  expect_distribution(frequencies({.temperature = 1, .top_k = 1}), {1}, 1);
  expect_distribution(frequencies({.temperature = 1, .top_k = 99}), {0, 1, 2, 3, 4, 5}, 1);
}

TEST(Sampler, TopPKeepsTheShortestHead) {
  // Shares: 0.398, 0.398, 0.146, 0.054 ...: 0.8 needs the third.
  expect_distribution(frequencies({.temperature = 1, .top_p = 0.8}), {1, 2, 4}, 1);
  expect_distribution(frequencies({.temperature = 1, .top_p = 0.3}), {1}, 1);
  expect_distribution(frequencies({.temperature = 1, .top_p = 1e-9}), {1}, 1);
}

TEST(Sampler, MinPIsMeasuredFromTheTop) {
  // exp(2 - 3) = 0.368, exp(1 - 3) = 0.135.
  expect_distribution(frequencies({.temperature = 1, .min_p = 0.2}), {1, 2, 4}, 1);
}

TEST(Sampler, AFunctionOfSeedAndPositionAlone) {
  Sampler one(default_kernels()), other(default_kernels());
  bool differs = false;
  for (std::uint64_t p = 0; p < 200; ++p) {
    const SampleSettings settings{.temperature = 1, .seed = 5, .position = p};
    const TokenId token = one.sample(kLogits, settings);
    (void)other.sample(kLogits, {.temperature = 0.5, .top_k = 2, .seed = 9, .position = p});
    EXPECT_EQ(other.sample(kLogits, settings), token);
    differs |= one.sample(kLogits, {.temperature = 1, .seed = 6, .position = p}) != token;
  }
  EXPECT_TRUE(differs);
}

TEST(Sampler, TinyTemperatureIsGreedy) {
  Sampler sampler(default_kernels());
  for (std::uint64_t p = 0; p < 50; ++p) {
    const TokenId token = sampler.sample(std::vector<float>{0.0f, 5.0f, 4.0f}, {.temperature = 1e-30, .position = p});
    EXPECT_EQ(token, 1);
  }
}

}  // namespace
}  // namespace tokenstone::kernels
