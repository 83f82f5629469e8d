#include "support/check_report.h"

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

namespace tokenstone::testing {

void report_check(const CheckReport& check) {
  const char* path = std::getenv("TOKENSTONE_CHECKS_FILE");
  if (path == nullptr) return;
  const nlohmann::ordered_json line = {
      {"id", check.id},
      {"value", check.value},
      {"lo", check.value},
      {"hi", check.value},
      {"n", check.n},
      {"unit", check.unit},
      {"op", check.op},
      {"target", check.target},
      {"pass", check.pass},
      {"skipped", check.skipped.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(check.skipped)},
      {"command", "./test.sh --json FILE"}};
  std::ofstream(path, std::ios::app) << line.dump() << '\n';
}

}  // namespace tokenstone::testing
