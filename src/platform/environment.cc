#include "platform/environment.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include <fmt/format.h>

#include "base/text.h"
#include "platform/child_process.h"

namespace tokenstone::platform {
namespace {

const std::string kUnknown = "unknown";

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || trim(line).empty()) return kUnknown;
  return std::string(trim(line));
}

/// The value of the first `key : value` or `KEY=value` line of a file.
std::string field_of(const std::string& path, std::string_view key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(separator);
    if (at == std::string::npos || trim(std::string_view(line).substr(0, at)) != key) continue;
    std::string_view value = trim(std::string_view(line).substr(at + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (!value.empty()) return std::string(value);
  }
  return kUnknown;
}

std::string gpu() {
  const auto ran = run_command({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"}, 2 * kSecond);
  if (!ran || ran->exit_code != 0 || trim(ran->out).empty())
    return access("/usr/bin/nvidia-smi", X_OK) == 0 ? kUnknown : "none";
  std::string text(trim(ran->out));
  for (char& c : text)
    if (c == '\n') c = ';';
  return text;
}

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

}  // namespace

std::map<std::string, std::string> probe_environment() {
  std::map<std::string, std::string> found;
  utsname system{};
  found["kernel"] =
      uname(&system) == 0 ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : kUnknown;
  found["os"] = field_of("/etc/os-release", "PRETTY_NAME", '=');
  found["cpu"] = field_of("/proc/cpuinfo", "model name", ':');
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  found["cpus"] = cpus > 0 ? std::to_string(cpus) : kUnknown;
  struct sysinfo memory{};
  found["memory_gib"] = sysinfo(&memory) == 0
                            ? fmt::format("{:.1f}", static_cast<double>(memory.totalram) * memory.mem_unit / (1u << 30))
                            : kUnknown;
  found["governor"] = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  found["gpu"] = gpu();
  return found;
}

double process_cpu_seconds() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return -1;
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double thread_cpu_seconds() {
  timespec t{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return -1;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::uint64_t raise_open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

}  // namespace tokenstone::platform
