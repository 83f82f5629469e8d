// Runs the README's commands: every line of its ```sh blocks, ./test.sh aside, which would start this test again.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/types.h"
#include "platform/child_process.h"
#include "support/shared_data.h"

namespace {

namespace fs = std::filesystem;
using namespace tokenstone;

std::vector<std::string> readme_commands() {
  std::istringstream page(tokenstone::testing::read_file(fs::path(TOKENSTONE_SOURCE_DIR) / "README.md"));
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```"))
      inside = line == "```sh";
    else if (inside && !line.empty() && !line.starts_with("./test.sh"))
      commands.push_back(line);
  }
  return commands;
}

/// The build that is being tested, in place of the release build that the README names.
std::string with_tested_binary(std::string command) {
  const std::string named = "build/release/tokenstone";
  if (const std::size_t at = command.find(named); at != std::string::npos)
    command.replace(at, named.size(), TOKENSTONE_BINARY_PATH);
  return command;
}

TEST(Readme, ItsCommandsRun) {
  const std::vector<std::string> commands = readme_commands();
  ASSERT_GE(commands.size(), 5u);
  const fs::path runs = tokenstone::testing::temporary_folder();
  const bool release = std::string(TOKENSTONE_BINARY_PATH).find("build/release/") != std::string::npos;
  for (const std::string& command : commands) {
    // quickstart.sh builds the release preset; under another preset that would test another binary.
    if (command.starts_with("./quickstart.sh") && !release) continue;
    const std::string dir = command.starts_with("./") ? TOKENSTONE_SOURCE_DIR : runs.string();
    const auto ran = platform::run_command({"bash", "-c", with_tested_binary(command)}, 300 * kSecond, dir,
                                           {"TOKENSTONE_REQUESTS=60"});
    ASSERT_TRUE(ran) << command;
    EXPECT_EQ(ran->exit_code, 0) << command << "\n" << ran->out << ran->err;
  }
}

}  // namespace
