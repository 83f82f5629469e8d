#include "app/command.h"

#include <cstdio>

namespace tokenstone::app {

int run_parsed(FlagSet& flags, const Args& args, const std::function<Status()>& run) {
  const auto parsed = flags.parse(args);
  if (!parsed) return report_error(parsed.error());
  if (parsed->help) {
    std::fputs(flags.help().c_str(), stdout);
    return 0;
  }
  for (const std::string& note : parsed->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const Status done = run();
  return done ? 0 : report_error(done.error());
}

int report_error(const Error& error) {
  std::fprintf(stderr, "tokenstone: %s\n", error.message.c_str());
  switch (error.kind) {
    case ErrorKind::unreachable:
    case ErrorKind::interrupted:
    case ErrorKind::internal:
      return 4;
    case ErrorKind::invalid_run:
      return 3;
    default:
      return 1;
  }
}

}  // namespace tokenstone::app
