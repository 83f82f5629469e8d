// docs/methodology.md and docs/formats.md say what the program does: the table of metrics is the program's own
// (TOKENSTONE_UPDATE_GOLDEN=1 rewrites it), and every column, class and code has its line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "record/metric_table.h"
#include "record/request_csv.h"
#include "record/step_csv.h"
#include "support/shared_data.h"

namespace tokenstone::report {
namespace {

std::filesystem::path doc(const char* name) {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "docs" / name;
}

std::string metrics_markdown() {
  std::string out;
  for (const record::MetricDescriptor& m : record::metric_table()) {
    out += fmt::format("### `{}`: {}\n\n{}\n\n", m.key, m.title, m.definition);
    out += fmt::format("- formula: {}\n- unit: {}\n- better: {}\n- vLLM: {}\n\n", m.formula,
                       m.unit.empty() ? "none" : m.unit, to_string(m.better),
                       m.vllm.empty() ? "has no such number" : m.vllm);
  }
  return out;
}

TEST(Methodology, HoldsTheTableOfMetrics) {
  const std::string begin = "<!-- metrics: begin -->\n", end = "<!-- metrics: end -->";
  std::string text = tokenstone::testing::read_file(doc("methodology.md"));
  std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  from += begin.size();
  if (std::getenv("TOKENSTONE_UPDATE_GOLDEN") != nullptr) {
    text.replace(from, to - from, metrics_markdown());
    std::ofstream(doc("methodology.md"), std::ios::binary) << text;
    to = text.find(end);
  }
  EXPECT_EQ(text.substr(from, to - from), metrics_markdown()) << "TOKENSTONE_UPDATE_GOLDEN=1 rewrites it";
}

TEST(Formats, NameEveryColumnClassAndCode) {
  const std::string text = tokenstone::testing::read_file(doc("formats.md"));
  const auto expect_named = [&](std::string_view name) {
    EXPECT_NE(text.find(fmt::format("`{}`", name)), std::string::npos) << name;
  };
  for (const std::string_view column : record::request_columns()) expect_named(column);
  for (const std::string_view column : record::step_columns()) expect_named(column);
  for (std::uint8_t i = 1; i <= static_cast<std::uint8_t>(record::ErrorClass::cancelled); ++i)
    expect_named(to_string(static_cast<record::ErrorClass>(i)));
  for (int code = 1; code <= 13; ++code)
    EXPECT_NE(text.find(fmt::format("| V{:02} |", code)), std::string::npos) << code;
}

}  // namespace
}  // namespace tokenstone::report
