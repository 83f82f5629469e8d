#include "support/program.h"

#include <stdexcept>

#include "support/shared_data.h"

namespace tokenstone::testing {

platform::CommandOutput run_program(const std::vector<std::string>& args, const std::string& dir,
                                    const std::vector<std::string>& environment) {
  std::vector<std::string> argv = {TOKENSTONE_BINARY_PATH};
  argv.insert(argv.end(), args.begin(), args.end());
  auto ran = platform::run_command(argv, kProgramLimit, dir.empty() ? temporary_folder().string() : dir, environment);
  if (!ran) throw std::runtime_error(ran.error().message);
  return *ran;
}

ServerProcess::ServerProcess(std::vector<std::string> args) {
  std::vector<std::string> argv = {TOKENSTONE_BINARY_PATH, "serve"};
  argv.insert(argv.end(), args.begin(), args.end());
  argv.insert(argv.end(), {"--port", "0"});
  auto started = platform::ChildProcess::start(argv);
  if (!started) throw std::runtime_error(started.error().message);
  process_.emplace(std::move(*started));
  while (auto line = process_->read_line(kProgramLimit)) {
    log_ += *line + "\n";
    const std::size_t at = line->find("listening on http://");
    if (at == std::string::npos) continue;
    url_ = line->substr(at + 13, line->find(' ', at + 13) - at - 13);
    return;
  }
  throw std::runtime_error("the server did not say where it listens:\n" + log_);
}

}  // namespace tokenstone::testing
