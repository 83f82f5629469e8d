// How a test reports one of the project's checks (docs/checks.md): a line of JSON appended to the file that
// TOKENSTONE_CHECKS_FILE names, which ./test.sh --json gathers. Without the variable nothing is written.
#pragma once

#include <string>
#include <string_view>

namespace tokenstone::testing {

struct CheckReport {
  std::string id;  ///< dotted and stable, e.g. "spine.oracle_ops"
  double value = 0;
  double n = 0;  ///< sample size behind the value
  std::string unit;
  std::string op = ">=";  ///< how value compares with target
  double target = 0;
  bool pass = false;
  std::string skipped;  ///< the reason, empty when the check was made
};

void report_check(const CheckReport& check);

}  // namespace tokenstone::testing
