// The subcommands. Each stands in its own file, parses its flags, wires modules together and prints; it returns the
// exit code of docs/formats.md: 0 passed, 1 wrong use, 2 an objective failed, 3 the result is not valid, 4 unreachable
// or interrupted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/flags.h"

namespace tokenstone::app {

using Args = std::vector<std::string>;

int run_serve(const Args& args);
int run_bench_serve(const Args& args);
int run_bench_latency(const Args& args);
int run_bench_throughput(const Args& args);
int run_report(const Args& args);
int run_export(const Args& args);
int run_model(const Args& args);
int run_tokenize(const Args& args);

/// The frame of a command: parses `args`, prints the help when it is asked for, notes to stderr, then `run`; the exit
/// code.
int run_parsed(FlagSet& flags, const Args& args, const std::function<Status()>& run);

/// Prints "tokenstone: MESSAGE" to stderr and gives the exit code that belongs to the error's kind.
int report_error(const Error& error);

}  // namespace tokenstone::app
