// Holds the floors of docs/architecture.md: a file includes only from floors below, and on its floor from rows above.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"
#include "support/shared_data.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TOKENSTONE_SOURCE_DIR;

/// Lowest first; the order is that of the table in docs/architecture.md.
const std::vector<std::string> kRows = {"base",  "stats",  "http",     "modelfile", "sched",  "kernels", "platform",
                                        "token", "record", "workload", "runtime",   "engine", "sim",     "loadgen",
                                        "judge", "report", "store",    "server",    "app"};

std::size_t row_of(const std::string& module) {
  return static_cast<std::size_t>(std::find(kRows.begin(), kRows.end(), module) - kRows.begin());
}

/// The path of an `#include "..."` line, or nothing.
std::string included_path(const std::string& line) {
  const std::string_view text = tokenstone::trim(line);
  constexpr std::string_view start = "#include \"";
  if (!text.starts_with(start)) return {};
  return std::string(text.substr(start.size(), text.find('"', start.size()) - start.size()));
}

template <class F>
void for_each_include(F&& visit) {
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    const fs::path& file = entry.path();
    if (file.extension() != ".cc" && file.extension() != ".h") continue;
    const std::string module = fs::relative(file, kRoot / "src").begin()->string();
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (const std::string path = included_path(line); !path.empty()) visit(file, module, path);
  }
}

TEST(Architecture, FilesIncludeOnlyFromFloorsBelow) {
  std::size_t seen = 0;
  for_each_include([&](const fs::path& file, const std::string& module, const std::string& included) {
    const std::string from = included.substr(0, included.find('/'));
    if (from == "support" || from == "bench" || included.find('/') == std::string::npos) return;
    ++seen;
    ASSERT_LT(row_of(module), kRows.size()) << file << ": '" << module << "' is no module of the house";
    ASSERT_LT(row_of(from), kRows.size()) << file << " includes " << included;
    EXPECT_LE(row_of(from), row_of(module)) << file << " includes " << included << ", which stands above it";
  });
  EXPECT_GT(seen, 100u);
}

TEST(Architecture, ThePageNamesEveryFolder) {
  const std::string page = tokenstone::testing::read_file(kRoot / "docs" / "architecture.md");
  std::size_t last = 0;
  for (const std::string& module : kRows) {
    const std::size_t at = page.find("| `" + module + "` |");
    ASSERT_NE(at, std::string::npos) << "docs/architecture.md has no row for " << module;
    EXPECT_GT(at, last) << module << " stands in another order in docs/architecture.md";
    last = at;
  }
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) folders.insert(entry.path().filename().string());
  EXPECT_EQ(folders, std::set<std::string>(kRows.begin(), kRows.end()));
}

TEST(Architecture, OneFileReadsClocks) {
  // STYLE: time is passed in; high_resolution_clock is the wall clock on libstdc++ and banned everywhere.
  const std::vector<std::string> clocks = {"clock_gettime", "gettimeofday", "steady_clock::now", "system_clock::now",
                                           "high_resolution_clock"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    const fs::path& file = entry.path();
    if (file.extension() != ".cc" && file.extension() != ".h") continue;
    const std::string relative = fs::relative(file, kRoot / "src").string();
    if (relative.starts_with("platform/")) continue;
    const std::string text = tokenstone::testing::read_file(file);
    for (const std::string& clock : clocks)
      EXPECT_EQ(text.find(clock), std::string::npos) << relative << " reads a clock: " << clock;
  }
}

}  // namespace
