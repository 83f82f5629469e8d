#include "support/shared_data.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tokenstone::testing {
namespace {

struct Folders {
  std::vector<std::filesystem::path> made;
  ~Folders() {
    std::error_code ignored;
    for (const auto& folder : made) std::filesystem::remove_all(folder, ignored);
  }
};

}  // namespace

std::optional<std::filesystem::path> shared_file(std::string_view relative) {
  const char* elsewhere = std::getenv("TOKENSTONE_SHARED");
  const std::filesystem::path root = elsewhere != nullptr
                                         ? std::filesystem::path(elsewhere)
                                         : std::filesystem::path(TOKENSTONE_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path path = root / relative;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::filesystem::path temporary_folder() {
  static Folders folders;
  std::string pattern = (std::filesystem::temp_directory_path() / "tokenstone-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  folders.made.emplace_back(pattern);
  return pattern;
}

}  // namespace tokenstone::testing
