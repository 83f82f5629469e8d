#include "platform/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace tokenstone::platform {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_signals(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalWatch::SignalWatch(Loop& loop, std::initializer_list<int> signals, std::function<void(int)> fn) : loop_(loop) {
  const sigset_t set = set_of(signals);
  fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  TS_CHECK(fd_ >= 0, "no signalfd: the limit of open files is too low");
  loop_.watch(fd_, Readiness{.readable = true}, [fd = fd_, fn = std::move(fn)](Readiness) {
    signalfd_siginfo info{};
    while (read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) fn(static_cast<int>(info.ssi_signo));
  });
}

SignalWatch::~SignalWatch() {
  loop_.unwatch(fd_);
  close(fd_);
}

void set_precise_timers() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}  // namespace tokenstone::platform
