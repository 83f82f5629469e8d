#include "workload/lengths.h"

#include <gtest/gtest.h>

#include <map>

#include "workload/random_streams.h"

namespace tokenstone::workload {
namespace {

TEST(Lengths, MixedHasItsSharesInEachTenRequests) {
  const NamedWorkload mixed = *find_workload("mixed");
  for (std::uint64_t ten = 0; ten < 50; ++ten) {
    std::map<std::string_view, int> counts;
    for (std::uint64_t i = 0; i < 10; ++i) ++counts[class_of(mixed, 3, ten * 10 + i).name];
    EXPECT_EQ(counts, (std::map<std::string_view, int>{{"chat", 5}, {"generate", 2}, {"summarize", 2}, {"long", 1}}));
  }
}

TEST(Lengths, OrderOfClassesChangesFromTenToTenAndWithTheSeed) {
  const NamedWorkload mixed = *find_workload("mixed");
  int same_ten = 0, same_seed = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same_ten += class_of(mixed, 3, i).name == class_of(mixed, 3, i + 10).name ? 1 : 0;
    same_seed += class_of(mixed, 3, i).name == class_of(mixed, 4, i).name ? 1 : 0;
  }
  EXPECT_NEAR(same_ten, 340, 60);  // 0.25 + 0.04 + 0.04 + 0.01
  EXPECT_NEAR(same_seed, 340, 60);
}

TEST(Lengths, NamedWorkloadsHaveTheirRanges) {
  EXPECT_EQ(describe(*find_workload("mixed"), 1),
            "mixed: 50 % chat (32-128 in, 32-128 out), 20 % generate (32-128 in, 512-2048 out), 20 % summarize "
            "(4096-16000 in, "
            "32-128 out), 10 % long (4096-16000 in, 512-2048 out); uniform lengths");
  EXPECT_EQ(describe(*find_workload("summarize"), 0.1),
            "summarize: 100 % summarize (410-1600 in, 3-13 out); uniform lengths, scale 0.1");
  const auto unknown = find_workload("chatt");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("did you mean chat?"), std::string::npos);
}

TEST(Lengths, ScaleNeverGivesNothing) {
  EXPECT_EQ(scaled(32, 0.001), 1);
  EXPECT_EQ(scaled(128, 0.1), 13);
  EXPECT_EQ(scaled(100, 2.5), 250);
}

TEST(Lengths, RangeRatioAsNumberOrPair) {
  EXPECT_EQ(parse_range_ratio("0.5")->output, 0.5);
  const auto pair = parse_range_ratio(R"({"input": 0.25, "output": 0})");
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->input, 0.25);
  EXPECT_EQ(pair->output, 0);
  for (const char* bad : {"1", "-0.1", "x", "", "{\"input\": 0.1}", "{\"input\": 0.1, \"output\": 2}", "[0.1]", "null"})
    EXPECT_FALSE(parse_range_ratio(bad).has_value()) << bad;
  const LengthRange range = around(1001, 0.25);  // floor(750.75), ceil(1251.25)
  EXPECT_EQ(range.lo, 750);
  EXPECT_EQ(range.hi, 1252);
  EXPECT_EQ(around(1, 0.9).lo, 1);
}

TEST(Lengths, ChatLawKeepsTheFilterAndTheMeans) {
  double input = 0, output = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    Rng rng(1, stream_of(streams::lengths, static_cast<std::uint64_t>(i)));
    const Lengths drawn = ChatLaw{}.draw(rng);
    ASSERT_TRUE(drawn.input >= 4 && drawn.input <= 1024 && drawn.output >= 4 && drawn.input + drawn.output <= 2048);
    input += static_cast<double>(drawn.input);
    output += static_cast<double>(drawn.output);
  }
  EXPECT_NEAR(input / kDraws, 221, 8);
  EXPECT_NEAR(output / kDraws, 203, 8);
}

}  // namespace
}  // namespace tokenstone::workload
