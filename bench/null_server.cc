// The null server as a program: prints its address, serves until Ctrl-C, then prints how late its events left.
#include <fmt/format.h>

#include <csignal>

#include "base/text.h"
#include "bench/null_server_lib.h"

namespace {

using namespace tokenstone;
using bench::NullServerOptions;

constexpr std::string_view kUsage =
    "usage: null_server [--ttft 50ms] [--itl 10ms] [--tokens-per-event 1] [--events-per-write 1] [--output-tokens 0 "
    "(as asked)]\n"
    "                   [--continuous-usage 0|1] [--host 127.0.0.1] [--port 0] [--pin CPU] [--behaviour "
    "stream|status|html|...]\n"
    "                   [--status 503] [--fail-after-events 2]        behaviours: bench/null_server_lib.h\n";

bool set_duration(std::string_view text, TimeNs& to) {
  const auto value = parse_duration(text);
  if (value) to = *value;
  return value && *value >= 0;
}

template <class Number>
bool set_number(std::string_view text, Number& to, std::int64_t lowest, std::int64_t highest) {
  const auto value = parse_int(text);
  if (!value || *value < lowest || *value > highest) return false;
  to = static_cast<Number>(*value);
  return true;
}

bool set_option(NullServerOptions& options, std::string_view name, std::string_view value) {
  if (name == "--ttft") return set_duration(value, options.ttft);
  if (name == "--itl") return set_duration(value, options.itl);
  if (name == "--tokens-per-event") return set_number(value, options.tokens_per_event, 1, 1'000'000);
  if (name == "--events-per-write") return set_number(value, options.events_per_write, 1, 10'000);
  if (name == "--output-tokens") return set_number(value, options.output_tokens, 0, 1'000'000'000);
  if (name == "--continuous-usage") return set_number(value, options.continuous_usage, 0, 1);
  if (name == "--port") return set_number(value, options.port, 0, 65535);
  if (name == "--pin") return set_number(value, options.pin_cpu, 0, 1023);
  if (name == "--status") return set_number(value, options.status, 100, 999);
  if (name == "--fail-after-events") return set_number(value, options.fail_after_events, 0, 1'000'000'000);
  if (name == "--behaviour") return bench::behaviour_from_string(value, options.behaviour);
  if (name == "--host") options.host = value;
  return name == "--host";
}

}  // namespace

int main(int argc, char** argv) {
  NullServerOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (set_option(options, argv[i], value)) continue;
    fmt::print(stderr, "expected a known option and a fitting value, found '{} {}'\n{}", argv[i], value, kUsage);
    return 1;
  }
  // Blocked before the server's thread starts, so that the signal waits for this thread.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const auto server = bench::NullServer::start(options);
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  fmt::print("listening on {}\n", (*server)->base_url());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ending, &signal);
  const auto stats = (*server)->stats();
  fmt::print("connections {} requests {} events {} abandoned {} lateness us p50 {:.1f} p99 {:.1f} max {:.1f}\n",
             stats.connections, stats.requests, stats.events, stats.abandoned, stats.lateness_p50_us,
             stats.lateness_p99_us, stats.lateness_max_us);
  return 0;
}
