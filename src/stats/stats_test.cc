// Golden values are worked out by hand or from closed forms; the rule stands beside each.
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "stats/arrival_law.h"
#include "stats/log_histogram.h"
#include "stats/sample.h"

namespace tokenstone::stats {
namespace {

Sample ramp(int count) {
  Sample sample;
  for (int i = count; i >= 1; --i) sample.add(i);
  return sample;
}

TEST(Quantile, FollowsNumPysLinearRule) {
  const Sample sample(std::vector<double>{40, 10, 30, 20});
  EXPECT_DOUBLE_EQ(sample.quantile(0.5).value, 25);             // position 1.5
  EXPECT_DOUBLE_EQ(sample.quantile(0.25).value, 17.5);          // position 0.75
  EXPECT_DOUBLE_EQ(sample.quantile(0.9).value, 30 + 0.7 * 10);  // position 2.7
  EXPECT_DOUBLE_EQ(sample.quantile(0).value, 10);
  EXPECT_DOUBLE_EQ(sample.quantile(1).value, 40);
  EXPECT_NEAR(ramp(100).quantile(0.99).value, 99.01, 1e-12);  // position 98.01 of 1..100
}

TEST(Quantile, SaysHowFarTheSampleCarries) {
  EXPECT_EQ(samples_needed(0.99), 1000u);
  EXPECT_EQ(samples_needed(0.9), 100u);
  EXPECT_EQ(samples_needed(0.999), 10'000u);
  EXPECT_EQ(samples_needed(0.5), 20u);
  EXPECT_EQ(samples_needed(0.01), 1000u);
  EXPECT_TRUE(ramp(1000).quantile(0.99).reliable);
  EXPECT_EQ(ramp(1000).quantile(0.99).beyond, 10u);
  EXPECT_FALSE(ramp(999).quantile(0.99).reliable);
  EXPECT_TRUE(ramp(999).quantile(0.99).available);
  EXPECT_TRUE(ramp(100).quantile(0.99).available);
  EXPECT_FALSE(ramp(99).quantile(0.99).available);
  EXPECT_TRUE(ramp(100).quantile(0.9).reliable);
  EXPECT_FALSE(ramp(1).quantile(0.5).available);
  EXPECT_TRUE(ramp(1).quantile(1).available);
  EXPECT_FALSE(ramp(1000).quantile(1).reliable);
}

TEST(Quantile, OfNothingIsNotAvailable) {
  const Sample nothing;
  EXPECT_FALSE(nothing.quantile(0.5).available);
  EXPECT_FALSE(nothing.quantile(1).available);
  EXPECT_EQ(nothing.mean(), 0);
  EXPECT_EQ(nothing.sample_std(), 0);
  EXPECT_EQ(nothing.max(), 0);
}

TEST(Sample, KeepsTheDigitsOfLargeValues) {
  // REP-08: deviations -20, 80, -120, 30, 30 from the mean; squares sum to 25,000; 25,000 / 4 = 6,250.
  const Sample clocks(std::vector<double>{12000000001, 12000000101, 11999999901, 12000000051, 11999999951});
  EXPECT_DOUBLE_EQ(clocks.mean(), 12000000001);
  EXPECT_NEAR(clocks.sample_std(), 79.0569415, 1e-6);
  EXPECT_NEAR(clocks.population_std(), std::sqrt(25000.0 / 5), 1e-6);
}

TEST(Sample, AnswersAfterEachAddition) {
  Sample sample;
  sample.add(3);
  EXPECT_EQ(sample.max(), 3);
  sample.add(1);
  EXPECT_EQ(sample.min(), 1);
  EXPECT_EQ(sample.quantile(0.5).value, 2);
  sample.add(5);
  EXPECT_EQ(sample.max(), 5);
  EXPECT_EQ(sample.sum(), 9);
  EXPECT_EQ(sample.sample_std(), 2);
}

TEST(Moments, MergeAsIfAddedInOnePlace) {
  Moments left, right, whole;
  for (int i = 0; i < 100; ++i) {
    (i < 30 ? left : right).add(i * i);
    whole.add(i * i);
  }
  left.merge(right);
  left.merge(Moments{});
  EXPECT_EQ(left.count(), 100u);
  EXPECT_NEAR(left.mean(), whole.mean(), 1e-9);
  EXPECT_NEAR(left.sample_variance(), whole.sample_variance(), 1e-6);
}

TEST(ArrivalLaw, GammaDistributionHasItsClosedForms) {
  for (const double x : {0.01, 0.5, 1.0, 2.0, 7.5, 40.0}) {
    EXPECT_NEAR(gamma_distribution(1, x), -std::expm1(-x), 1e-13);
    EXPECT_NEAR(gamma_distribution(0.5, x), std::erf(std::sqrt(x)), 1e-13);
    EXPECT_NEAR(gamma_distribution(4, x), 1 - std::exp(-x) * (1 + x + x * x / 2 + x * x * x / 6), 1e-13);
  }
  EXPECT_EQ(gamma_distribution(3, 0), 0);
}

TEST(ArrivalLaw, KolmogorovSmirnovByHand) {
  const std::vector<double> values{0.7, 0.1, 0.4};
  EXPECT_NEAR(ks_test_uniform(values, 0, 1).statistic, 0.3, 1e-12);  // 1 - 0.7 at the last value
  EXPECT_NEAR(kolmogorov_p_value(0.0136, 10'000), 0.04906, 2e-4);    // 2 exp(-2 x 1.3616^2)
  EXPECT_EQ(kolmogorov_p_value(0, 100), 1);
  EXPECT_LT(kolmogorov_p_value(0.5, 1000), 1e-12);
}

TEST(ArrivalLaw, KolmogorovSmirnovTellsLawsApart) {
  Rng rng(7, 1);
  std::vector<double> exponential, bursty;
  for (int i = 0; i < 5000; ++i) {
    exponential.push_back(2 * rng.exponential());
    bursty.push_back(rng.gamma(0.5) * 4);
  }
  EXPECT_GT(ks_test_exponential(exponential, 2).p_value, 0.01);
  EXPECT_GT(ks_test_gamma(bursty, 0.5, 2).p_value, 0.01);
  EXPECT_LT(ks_test_exponential(bursty, 2).p_value, 1e-6);
  EXPECT_LT(ks_test_exponential(exponential, 2.2).p_value, 1e-3);
}

TEST(ArrivalLaw, IndexOfDispersion) {
  std::vector<TimeNs> constant, pairs;
  for (int i = 0; i < 100; ++i) constant.push_back(i * kSecond);
  EXPECT_EQ(index_of_dispersion(constant, 10 * kSecond, 100 * kSecond), 0);
  // Windows hold 2, 0, 2, 0: mean 1, sample variance 4/3.
  for (const TimeNs at : {TimeNs{0}, TimeNs{1}, 2 * kSecond, 2 * kSecond + 1}) pairs.push_back(at);
  EXPECT_NEAR(index_of_dispersion(pairs, kSecond, 4 * kSecond), 4.0 / 3, 1e-12);
  EXPECT_EQ(index_of_dispersion(pairs, kSecond, kSecond), 0);
  EXPECT_EQ(gaps_in_seconds(std::vector<TimeNs>{kSecond, 3 * kSecond}), (std::vector<double>{1, 2}));
}

TEST(LogHistogram, HoldsThreeDigitsAndDropsNothing) {
  LogHistogram histogram;
  Rng rng(3, 1);
  Sample exact;
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(1e6 * rng.exponential());
    histogram.add(value);
    exact.add(static_cast<double>(value));
  }
  for (const double q : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double truth = exact.sorted()[static_cast<std::size_t>(std::ceil(q * 20'000)) - 1];
    EXPECT_NEAR(static_cast<double>(histogram.quantile(q)), truth, truth * 0.0005 + 1) << q;
  }
  EXPECT_EQ(histogram.quantile(1), histogram.max());
  EXPECT_EQ(static_cast<double>(histogram.max()), exact.max());
}

TEST(LogHistogram, TakesEveryNonNegativeValue) {
  LogHistogram histogram;
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{2047}, std::int64_t{2048}, INT64_MAX})
    histogram.add(value);
  EXPECT_EQ(histogram.count(), 4u);
  EXPECT_EQ(histogram.quantile(0), 0);
  EXPECT_EQ(histogram.quantile(0.5), 2047);
  EXPECT_EQ(histogram.quantile(0.75), 2049);  // middle of [2048, 2050)
  EXPECT_NEAR(static_cast<double>(histogram.quantile(1)), 9.223e18, 1e16);
  LogHistogram other;
  other.add(5, 3);
  histogram.merge(other);
  EXPECT_EQ(histogram.count(), 7u);
  EXPECT_EQ(histogram.min(), 0);
}

}  // namespace
}  // namespace tokenstone::stats
