// Starting the program that is being tested, and its server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/child_process.h"

namespace tokenstone::testing {

inline constexpr TimeNs kProgramLimit = 240 * kSecond;

/// Runs the program to its end, in a folder of its own unless `dir` is given.
platform::CommandOutput run_program(const std::vector<std::string>& args, const std::string& dir = {},
                                    const std::vector<std::string>& environment = {});

/// `tokenstone serve` on a free port of the loopback interface.
class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> args = {"tiny-15m"});
  const std::string& url() const { return url_; }
  platform::ChildProcess& process() { return *process_; }
  const std::string& log() const { return log_; }

 private:
  std::optional<platform::ChildProcess> process_;
  std::string url_, log_;
};

}  // namespace tokenstone::testing
