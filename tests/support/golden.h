// Golden files under tests/data. TOKENSTONE_UPDATE_GOLDEN=1 rewrites them; look at the difference before keeping it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace tokenstone::testing {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(__FILE__).parent_path().parent_path() / "data" / name;
}

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = golden_path(name);
  if (std::getenv("TOKENSTONE_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream wanted;
  wanted << in.rdbuf();
  EXPECT_EQ(text, wanted.str()) << path << " differs; TOKENSTONE_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace tokenstone::testing
