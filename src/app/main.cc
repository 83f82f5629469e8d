// tokenstone: the entry. Finds the subcommand and hands it its words.

#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "app/command.h"
#include "app/version.h"
#include "base/text.h"

namespace {

using namespace tokenstone;

struct Command {
  std::vector<std::string> words;
  int (*run)(const app::Args&);
  const char* summary;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {{"serve"}, app::run_serve, "the embedded engine as an OpenAI-compatible server"},
      {{"bench", "serve"}, app::run_bench_serve, "load on a server, on the embedded engine or in virtual time"},
      {{"bench", "latency"}, app::run_bench_latency, "one batch on the embedded engine, again and again"},
      {{"bench", "throughput"}, app::run_bench_throughput, "everything at once on the embedded engine"},
      {{"report"}, app::run_report, "the summary of a saved run"},
      {{"export"}, app::run_export, "a saved run's token events as CSV"},
      {{"model"}, app::run_model, "look into a model file: model inspect PATH"},
      {{"tokenize"}, app::run_tokenize, "token ids of a text"},
  };
  return table;
}

void print_help() {
  std::fputs(
      "tokenstone proves whether an LLM inference engine is really faster.\n\nusage: tokenstone COMMAND [flags]\n\n",
      stdout);
  for (const Command& command : commands()) fmt::print("  {:<18}{}\n", join(command.words, " "), command.summary);
  std::fputs(
      "\n  tokenstone COMMAND --help      the command's flags\n"
      "  tokenstone --version           the version\n\n"
      "First run, nothing needed:      tokenstone bench serve --target engine\n",
      stdout);
}

int unknown(const std::string& typed) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(join(command.words, " "));
  const auto near = nearest_name(typed, names);
  return app::report_error(Error{
      ErrorKind::usage, fmt::format("unknown command '{}'{}", typed,
                                    near ? fmt::format("; did you mean '{}'?", *near) : "; see 'tokenstone --help'")});
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const app::Args args(argv + 1, argv + argc);
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    print_help();
    return args.empty() ? 1 : 0;
  }
  if (args[0] == "--version") {
    fmt::print("tokenstone {}\n", app::kVersion);
    return 0;
  }
  for (const Command& command : commands()) {
    if (args.size() < command.words.size() || !std::equal(command.words.begin(), command.words.end(), args.begin()))
      continue;
    return command.run(app::Args(args.begin() + static_cast<std::ptrdiff_t>(command.words.size()), args.end()));
  }
  return unknown(args[0] == "bench" && args.size() > 1 ? "bench " + args[1] : args[0]);
}
