// The flag tables of the commands that have a counterpart in vLLM, bound to values that nobody reads: for
// docs/vllm-parity.md.
#pragma once

#include "app/flags.h"

namespace tokenstone::app {

FlagSet bench_serve_flag_table();
FlagSet bench_latency_flag_table();
FlagSet bench_throughput_flag_table();
FlagSet serve_flag_table();

}  // namespace tokenstone::app
