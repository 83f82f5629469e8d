// Starting other programs: run to the end with a time limit, or keep one running and end it by its id.
// Ownership: a ChildProcess ends its child (and the child's process group) when it goes. Threads: one caller.
// Failure: a program that cannot be started is an Error; everything else is in the exit code.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::platform {

struct CommandOutput {
  int exit_code = -1;  ///< 128 + signal when a signal ended it; -1 when the time limit did
  std::string out, err;
  bool timed_out = false;
};

/// Runs `argv` (searched in PATH) with empty standard input and gathers what it prints.
Result<CommandOutput> run_command(const std::vector<std::string>& argv, TimeNs limit,
                                  const std::string& working_dir = {},
                                  const std::vector<std::string>& extra_environment = {});

class ChildProcess {
 public:
  /// `argv` with standard output and error into pipes that `read_line` reads.
  static Result<ChildProcess> start(const std::vector<std::string>& argv, const std::string& working_dir = {},
                                    const std::vector<std::string>& extra_environment = {});
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// The next line of standard error and output together; nothing at the end or after `limit`.
  std::optional<std::string> read_line(TimeNs limit);
  void signal(int number) const;
  /// The exit code, as in CommandOutput; nothing when it still runs after `limit`.
  std::optional<int> wait(TimeNs limit);

 private:
  ChildProcess() = default;
  void reap();
  pid_t pid_ = -1;
  int output_ = -1;
  std::string buffer_;
  std::optional<int> exit_code_;
};

}  // namespace tokenstone::platform
