// The machine that a run took place on. What cannot be found out is "unknown", never guessed.
// Failure: none. Cost: reads a few files under /proc and /sys and asks nvidia-smi when it is there (bounded to 2 s).
#pragma once

#include <map>
#include <string>

namespace tokenstone::platform {

/// Keys: os, kernel, cpu, cpus, memory_gib, governor, gpu, hostname is left out on purpose.
std::map<std::string, std::string> probe_environment();

/// CPU seconds that this process used so far (user and system).
double process_cpu_seconds();
/// CPU seconds of the calling thread.
double thread_cpu_seconds();

/// Raises the limit of open files to the hard limit; the resulting limit.
std::uint64_t raise_open_file_limit();

}  // namespace tokenstone::platform
