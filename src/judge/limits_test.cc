#include <gtest/gtest.h>

#include "judge/limits.h"

namespace tokenstone::judge {
namespace {

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().message;
}

TEST(GoodputLimits, AreMillisecondsUnlessTheyHaveAUnit) {  // GDP-01
  const auto limits = parse_goodput({"ttft:200", "tpot:0.05s", "e2e:5000", "itl.p90:40"});
  ASSERT_TRUE(limits.has_value()) << limits.error().message;
  ASSERT_EQ(limits->size(), 4u);
  EXPECT_EQ((*limits)[0].metric, "ttft");
  EXPECT_DOUBLE_EQ((*limits)[0].limit_ms, 200);
  EXPECT_FALSE((*limits)[0].quantile.has_value());
  EXPECT_DOUBLE_EQ((*limits)[1].limit_ms, 50);
  EXPECT_EQ((*limits)[2].metric, "e2el");
  EXPECT_DOUBLE_EQ(*(*limits)[3].quantile, 0.9);
  EXPECT_EQ((*limits)[0].text, "ttft:200");
}

TEST(GoodputLimits, RefuseWithTheNearestName) {
  EXPECT_NE(message(parse_goodput({"tfft:200"})).find("did you mean 'ttft'?"), std::string::npos);
  for (const char* word : {"ttft", "ttft:", "ttft:-1", "ttft:0", "ttft:inf", "ttft:nan", "ttft:2x", ":5",
                           "ttft.p99:200", "itl.p0:5", "itl.p100:5"}) {
    const auto limits = parse_goodput({word});
    ASSERT_FALSE(limits.has_value()) << word;
    EXPECT_NE(limits.error().message.find(word), std::string::npos) << limits.error().message;
    EXPECT_EQ(limits.error().kind, ErrorKind::usage);
  }
  EXPECT_NE(message(parse_goodput({"ttft:200", "ttft:300"})).find("same metric"), std::string::npos);
}

TEST(Objectives, HaveAQuantileAndAUnit) {
  const auto slo = parse_slo("ttft.p99<500ms, tpot.p99.9 <= 0.05s,e2e.median<2s");
  ASSERT_TRUE(slo.has_value()) << slo.error().message;
  ASSERT_EQ(slo->size(), 3u);
  EXPECT_DOUBLE_EQ(*(*slo)[0].quantile, 0.99);
  EXPECT_DOUBLE_EQ((*slo)[0].limit_ms, 500);
  EXPECT_DOUBLE_EQ(*(*slo)[1].quantile, 0.999);
  EXPECT_DOUBLE_EQ((*slo)[1].limit_ms, 50);
  EXPECT_EQ((*slo)[2].metric, "e2el");
  EXPECT_DOUBLE_EQ(*(*slo)[2].quantile, 0.5);
  EXPECT_EQ((*slo)[0].text, "ttft.p99<500ms");
}

TEST(Objectives, RefuseWhatIsNotClear) {
  for (const char* text : {"", " ", "ttft.p99", "ttft<500ms", "ttft.p99<500", "ttft.p99>500ms", "ttft.q99<5ms",
                           "ttft.p99<-1ms", "ttft.p99<500ms,"})
    EXPECT_FALSE(parse_slo(text).has_value()) << text;
  EXPECT_NE(message(parse_slo("tpott.p99<5ms")).find("did you mean 'tpot'?"), std::string::npos);
  EXPECT_NE(message(parse_slo("ttft<5ms")).find("--goodput"), std::string::npos);
}

TEST(QuantileNames, HaveNoRoundingDust) {
  EXPECT_EQ(quantile_name(0.99), "p99");
  EXPECT_EQ(quantile_name(0.999), "p99.9");
  EXPECT_EQ(quantile_name(0.9999), "p99.99");
  EXPECT_EQ(quantile_name(0.5), "p50");
}

}  // namespace
}  // namespace tokenstone::judge
