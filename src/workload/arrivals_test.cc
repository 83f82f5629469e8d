#include "workload/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "stats/arrival_law.h"
#include "stats/sample.h"

namespace tokenstone::workload {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ArrivalOptions gamma_by_count(double rate, double burstiness, std::uint64_t count) {
  ArrivalOptions options;
  options.kind = ArrivalKind::gamma;
  options.rate = rate;
  options.burstiness = burstiness;
  options.count = count;
  options.seed = 1;
  return options;
}

ArrivalOptions gamma_by_duration(double rate, double burstiness, TimeNs duration) {
  ArrivalOptions options = gamma_by_count(rate, burstiness, 0);
  options.count.reset();
  options.duration = duration;
  return options;
}

TEST(Arrivals, MeanRateByCountIsExact) {  // ARR-01: 10,000 requests at 200/s end at 50 s sharp
  for (const double burstiness : {0.5, 1.0, 4.0}) {
    const auto times = make_arrivals(gamma_by_count(200, burstiness, 10'000));
    ASSERT_EQ(times.size(), 10'000u);
    EXPECT_EQ(times.back(), 50 * kSecond) << burstiness;
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_GT(times.front(), 0);  // the first request waits for its gap, too
  }
}

TEST(Arrivals, RescalesByTheLastInstant) {
  // The rule spelled out: cumulative gaps of the arrivals' stream, times (N / rate) / last.
  Rng rng(1, streams::arrivals);
  std::vector<double> at;
  double now = 0;
  for (int i = 0; i < 5; ++i) at.push_back(now += rng.exponential());
  const auto times = make_arrivals(gamma_by_count(2, 1, 5));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(to_seconds(times[i]), at[i] * 2.5 / at[4], 1e-9);
}

TEST(Arrivals, GoldenScheduleOfASeed) {  // changes of the drawing order must be seen
  const std::vector<TimeNs> golden{4951892, 49790340, 96689226, 400000000};
  EXPECT_EQ(make_arrivals(gamma_by_count(10, 1, 4)), golden);
}

TEST(Arrivals, PoissonByDurationPassesTheTest) {
  const auto times = make_arrivals(gamma_by_duration(100, 1, 100 * kSecond));
  const auto gaps = stats::gaps_in_seconds(times);
  EXPECT_NEAR(static_cast<double>(times.size()), 10'000, 400);  // four standard deviations
  EXPECT_NE(times.size(), 10'000u);                             // not rescaled
  EXPECT_GT(stats::ks_test_exponential(gaps, 0.01).p_value, 0.01);
  EXPECT_NEAR(stats::index_of_dispersion(times, kSecond, 100 * kSecond), 1, 0.5);
  EXPECT_LT(times.back(), 100 * kSecond);
}

TEST(Arrivals, GammaKeepsTheMeanAndHasItsVariance) {  // ARR-09: mean 1/rate, variance 1 / (rate^2 b)
  for (const double burstiness : {0.5, 4.0}) {
    const auto gaps = stats::gaps_in_seconds(make_arrivals(gamma_by_duration(100, burstiness, 200 * kSecond)));
    EXPECT_GT(stats::ks_test_gamma(gaps, burstiness, 0.01).p_value, 0.01) << burstiness;
    const stats::Sample sample(gaps);
    EXPECT_NEAR(sample.mean(), 0.01, 0.0005);
    EXPECT_NEAR(sample.sample_std(), 0.01 / std::sqrt(burstiness), 0.0006);
  }
}

TEST(Arrivals, ConstantRate) {
  EXPECT_EQ(arrival_kind(5, kInfinity), ArrivalKind::constant);
  ArrivalOptions options = gamma_by_count(4, kInfinity, 3);
  options.kind = ArrivalKind::constant;
  EXPECT_EQ(make_arrivals(options), (std::vector<TimeNs>{kSecond / 4, kSecond / 2, kSecond * 3 / 4}));
  options.count.reset();
  options.duration = kSecond;
  EXPECT_EQ(make_arrivals(options).size(), 3u);  // the fourth would be due when the second is over
}

TEST(Arrivals, BurstAndClosedLoop) {
  EXPECT_EQ(arrival_kind(kInfinity, 1), ArrivalKind::burst);
  EXPECT_EQ(arrival_kind(3, 1), ArrivalKind::gamma);
  ArrivalOptions options;
  options.count = 3;
  EXPECT_EQ(make_arrivals(options), std::vector<TimeNs>(3, 0));
  options.kind = ArrivalKind::closed_loop;
  EXPECT_EQ(make_arrivals(options), std::vector<TimeNs>(3, kUnknownTime));
  options.count.reset();
  options.duration = kSecond;
  EXPECT_TRUE(options.validate().has_value());
  EXPECT_TRUE(make_arrivals(options).empty());
}

TEST(Arrivals, EachStageStartsAnew) {  // ARR-07
  ArrivalOptions options;
  options.kind = ArrivalKind::stages;
  options.stages = *parse_stages("10:50s, 100:50s,20:100s");
  options.seed = 5;
  const auto times = make_arrivals(options);
  const auto count_in = [&](TimeNs from, TimeNs to) {
    return static_cast<double>(
        std::count_if(times.begin(), times.end(), [=](TimeNs t) { return t >= from && t < to; }));
  };
  EXPECT_NEAR(count_in(0, 50 * kSecond), 500, 90);
  EXPECT_NEAR(count_in(50 * kSecond, 100 * kSecond), 5000, 280);
  EXPECT_NEAR(count_in(100 * kSecond, 200 * kSecond), 2000, 180);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  // What comes after does not depend on what was before: the same second stage behind a first one of another rate.
  options.stages[0].rate = 1;
  const auto other = make_arrivals(options);
  const auto first = std::lower_bound(times.begin(), times.end(), 50 * kSecond);
  const auto other_first = std::lower_bound(other.begin(), other.end(), 50 * kSecond);
  EXPECT_TRUE(std::equal(first, times.end(), other_first, other.end()));
}

TEST(Arrivals, StagesParse) {
  const auto stages = parse_stages("1:30s,5.5:2m,20:500ms");
  ASSERT_TRUE(stages.has_value());
  ASSERT_EQ(stages->size(), 3u);
  EXPECT_EQ((*stages)[1].rate, 5.5);
  EXPECT_EQ((*stages)[1].length, 120 * kSecond);
  for (const char* bad : {"", "5", "5:", ":30s", "0:30s", "-1:30s", "5:0s", "inf:30s", "5:30s,", "5:30s:1", "x:30s"}) {
    const auto refused = parse_stages(bad);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_NE(refused.error().message.find("1:30s,5:30s,20:30s"), std::string::npos);
  }
}

TEST(Arrivals, TraceIsOrderedRebasedAndSpedUp) {
  const OrderedTrace ordered = order_trace({700, 500, 900, 500, 800});
  EXPECT_EQ(ordered.times, (std::vector<TimeNs>{0, 0, 200, 300, 400}));
  EXPECT_EQ(ordered.order, (std::vector<std::uint32_t>{1, 3, 0, 4, 2}));  // stable
  EXPECT_EQ(ordered.unsorted, 2u);
  ArrivalOptions options;
  options.kind = ArrivalKind::trace;
  options.trace = ordered.times;
  options.speedup = 4;
  EXPECT_EQ(make_arrivals(options), (std::vector<TimeNs>{0, 0, 50, 75, 100}));
  options.count = 3;
  EXPECT_EQ(make_arrivals(options).size(), 3u);
  options.count.reset();
  options.duration = 75;
  EXPECT_EQ(make_arrivals(options).size(), 3u);
}

TEST(Arrivals, WrongOptionsAreRefusedInOneLine) {
  const auto refused = [](const ArrivalOptions& options, std::string_view word) {
    const auto status = options.validate();
    ASSERT_FALSE(status.has_value()) << word;
    EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  };
  for (const double burstiness : {0.0, -1.0, std::nan("")}) refused(gamma_by_count(5, burstiness, 10), "--burstiness");
  for (const double rate : {0.0, -2.0, std::nan("")}) refused(gamma_by_count(rate, 1, 10), "--request-rate");
  refused(gamma_by_count(kInfinity, 1, 10), "--request-rate");
  refused(gamma_by_count(1e-9, 1, 10), "raise the rate");
  refused(gamma_by_duration(10, 1, 0), "--duration");
  refused(gamma_by_duration(1e9, 1, kSecond), "at most");
  ArrivalOptions options;
  refused(options, "--max-concurrency");
  options.kind = ArrivalKind::stages;
  refused(options, "--stages");
  options.kind = ArrivalKind::trace;
  options.speedup = 0;
  refused(options, "--speedup");
  options.speedup = 1e-12;
  options.trace = {0, kSecond};
  refused(options, "--speedup");
}

}  // namespace
}  // namespace tokenstone::workload
