#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokenstone {
namespace {

TEST(ParseInt, TakesWholeTextsOnly) {
  EXPECT_EQ(parse_int("-42"), -42);
  EXPECT_EQ(parse_int("9223372036854775807"), INT64_MAX);
  for (const auto* bad : {"", " 1", "1 ", "1.0", "0x10", "9223372036854775808", "+1"})
    EXPECT_FALSE(parse_int(bad)) << bad;
}

TEST(ParseDouble, KnowsInfButNotNan) {
  EXPECT_EQ(parse_double("2.5e3"), 2500.0);
  EXPECT_TRUE(std::isinf(*parse_double("inf")));
  for (const auto* bad : {"", "nan", "-nan", "1x", "1e999", " 1"}) EXPECT_FALSE(parse_double(bad)) << bad;
}

TEST(ParseDuration, UnitsAndPlainSeconds) {
  EXPECT_EQ(parse_duration("250ms"), 250 * kMillisecond);
  EXPECT_EQ(parse_duration("1.5s"), 1'500 * kMillisecond);
  EXPECT_EQ(parse_duration("80us"), 80 * kMicrosecond);
  EXPECT_EQ(parse_duration("2m"), 120 * kSecond);
  EXPECT_EQ(parse_duration("1h"), 3'600 * kSecond);
  EXPECT_EQ(parse_duration("3"), 3 * kSecond);
  for (const auto* bad : {"", "s", "ms", "1d", "inf", "infs", "1 s"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(NearestName, FindsSlipsOfTheKeyboardOnly) {
  const std::vector<std::string> names = {"request-rate", "num-prompts", "seed"};
  EXPECT_EQ(nearest_name("reqest-rate", names), "request-rate");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_FALSE(nearest_name("temperature", names));
}

TEST(FormatFigure, ThreeSignificantDigits) {
  EXPECT_EQ(format_figure(0.41249), "0.412");
  EXPECT_EQ(format_figure(18.44), "18.4");
  EXPECT_EQ(format_figure(412.4), "412");
  EXPECT_EQ(format_figure(6130), "6,130");
  EXPECT_EQ(format_figure(1234567), "1,234,567");
  EXPECT_EQ(format_figure(9.996), "10.0");
  EXPECT_EQ(format_figure(0), "0");
  EXPECT_EQ(format_figure(std::nan("")), "n/a");
}

TEST(ToValidUtf8, ReplacesWhatIsIllFormedAndKeepsTheRest) {
  EXPECT_EQ(to_valid_utf8("a\xC3\xA9\xE2\x82\xAC"), "a\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(to_valid_utf8("a\xFF"
                          "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(to_valid_utf8("\xE2\x82"), "\xEF\xBF\xBD");                          // cut off: one mark
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80").find("\xED\xA0"), std::string::npos);  // a surrogate
}

}  // namespace
}  // namespace tokenstone
