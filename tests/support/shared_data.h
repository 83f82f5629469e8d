// Where tests find the reference material that lies beside the project (../shared), which is not part of it.
// Tests that use it must pass without it: they call GTEST_SKIP with the reason that `shared_file` gives.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tokenstone::testing {

/// The path of a file or folder under ../shared, or nothing when it is not there. TOKENSTONE_SHARED overrides the
/// place.
std::optional<std::filesystem::path> shared_file(std::string_view relative);
/// Whole content of a file; fails the test when it cannot be read.
std::string read_file(const std::filesystem::path& path);
/// A fresh empty folder for one test, removed at exit.
std::filesystem::path temporary_folder();

}  // namespace tokenstone::testing
