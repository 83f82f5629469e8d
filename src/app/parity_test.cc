#include "app/parity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/shared_data.h"

namespace tokenstone::app {
namespace {

TEST(Parity, EveryFlagOfVllmsIsSupportedAcceptedOrRefusedByName) {
  for (const ForeignCommand& command : vllm_commands()) {
    const auto standings = standings_of(command.command);
    for (const std::string_view flag : command.flags)
      EXPECT_TRUE(standings.contains(std::string(flag)))
          << "vllm " << command.command << " --" << flag << " has no standing";
  }
}

TEST(Parity, ThePageSaysWhatTheFlagTablesSay) {
  const auto path = std::filesystem::path(TOKENSTONE_SOURCE_DIR) / "docs" / "vllm-parity.md";
  if (std::getenv("TOKENSTONE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << parity_page();
  EXPECT_EQ(tokenstone::testing::read_file(path), parity_page());
}

}  // namespace
}  // namespace tokenstone::app
