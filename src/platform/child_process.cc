#include "platform/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "platform/real_loop.h"

extern char** environ;

namespace tokenstone::platform {
namespace {

struct Pipes {
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};
  int failure[2] = {-1, -1};  // the child's errno when exec fails; closed by a successful exec
};

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> raw;
  for (std::string& text : texts) raw.push_back(text.data());
  raw.push_back(nullptr);
  return raw;
}

[[noreturn]] void become(const Pipes& pipes, std::vector<char*>& argv, std::vector<char*>& env,
                         const std::string& dir) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(pipes.out[1], 1);
  dup2(pipes.err[1] >= 0 ? pipes.err[1] : pipes.out[1], 2);
  if (dir.empty() || chdir(dir.c_str()) == 0) {
    environ = env.data();
    execvp(argv[0], argv.data());
  }
  const int error = errno;
  [[maybe_unused]] const auto written = write(pipes.failure[1], &error, sizeof error);
  _exit(127);
}

/// Starts the program; `pipes.err[1]` of -1 sends standard error where standard output goes.
Result<pid_t> spawn(std::vector<std::string> argv, const std::string& dir, const std::vector<std::string>& extra,
                    Pipes& pipes) {
  std::vector<std::string> environment = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& e) {
      return e.size() > name.size() && e.compare(0, name.size(), name) == 0 && e[name.size()] == '=';
    });
    if (!replaced) environment.emplace_back(*entry);
  }
  auto raw_argv = pointers(argv);
  auto raw_environment = pointers(environment);
  if (pipe2(pipes.failure, O_CLOEXEC) != 0)
    return fail(ErrorKind::internal, "cannot make a pipe: the limit of open files is too low");
  const pid_t pid = fork();
  if (pid == 0) become(pipes, raw_argv, raw_environment, dir);
  close_fd(pipes.out[1]);
  close_fd(pipes.err[1]);
  close_fd(pipes.failure[1]);
  int error = pid < 0 ? errno : 0;
  if (pid > 0 && read(pipes.failure[0], &error, sizeof error) == sizeof error) waitpid(pid, nullptr, 0);
  close_fd(pipes.failure[0]);
  if (error != 0) return usage_error(fmt::format("cannot start '{}': {}", argv[0], std::strerror(error)));
  return pid;
}

int to_exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Reads what is there; false at the end of the stream.
bool read_some(int fd, std::string& into) {
  char buffer[16384];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got > 0) into.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

int milliseconds_left(TimeNs deadline) {
  const TimeNs left = deadline - monotonic_now();
  return left <= 0 ? 0 : static_cast<int>(std::min<TimeNs>(left / kMillisecond + 1, 1'000'000));
}

}  // namespace

Result<CommandOutput> run_command(const std::vector<std::string>& argv, TimeNs limit, const std::string& working_dir,
                                  const std::vector<std::string>& extra_environment) {
  Pipes pipes;
  if (pipe2(pipes.out, O_CLOEXEC) != 0 || pipe2(pipes.err, O_CLOEXEC) != 0)
    return fail(ErrorKind::internal, "cannot make a pipe: the limit of open files is too low");
  auto pid = spawn(argv, working_dir, extra_environment, pipes);
  CommandOutput output;
  const TimeNs deadline = monotonic_now() + limit;
  while (pid && (pipes.out[0] >= 0 || pipes.err[0] >= 0)) {
    pollfd fds[2] = {{pipes.out[0], POLLIN, 0}, {pipes.err[0], POLLIN, 0}};
    if (poll(fds, 2, milliseconds_left(deadline)) == 0) {
      output.timed_out = true;
      kill(-*pid, SIGKILL);
      break;
    }
    if (fds[0].revents != 0 && !read_some(pipes.out[0], output.out)) close_fd(pipes.out[0]);
    if (fds[1].revents != 0 && !read_some(pipes.err[0], output.err)) close_fd(pipes.err[0]);
  }
  close_fd(pipes.out[0]);
  close_fd(pipes.err[0]);
  if (!pid) return std::unexpected(pid.error());
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  output.exit_code = output.timed_out ? -1 : to_exit_code(status);
  return output;
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& argv, const std::string& working_dir,
                                         const std::vector<std::string>& extra_environment) {
  Pipes pipes;
  if (pipe2(pipes.out, O_CLOEXEC) != 0)
    return fail(ErrorKind::internal, "cannot make a pipe: the limit of open files is too low");
  auto pid = spawn(argv, working_dir, extra_environment, pipes);
  if (!pid) {
    close_fd(pipes.out[0]);
    return std::unexpected(pid.error());
  }
  ChildProcess child;
  child.pid_ = *pid;
  child.output_ = pipes.out[0];
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  reap();
  pid_ = std::exchange(other.pid_, -1);
  output_ = std::exchange(other.output_, -1);
  buffer_ = std::move(other.buffer_);
  exit_code_ = other.exit_code_;
  return *this;
}

ChildProcess::~ChildProcess() { reap(); }

void ChildProcess::reap() {
  if (pid_ > 0 && !exit_code_) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  close_fd(output_);
}

std::optional<std::string> ChildProcess::read_line(TimeNs limit) {
  const TimeNs deadline = monotonic_now() + limit;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (output_ < 0) return std::nullopt;
    pollfd fd{output_, POLLIN, 0};
    if (poll(&fd, 1, milliseconds_left(deadline)) == 0) return std::nullopt;
    if (!read_some(output_, buffer_)) {
      close_fd(output_);
      if (!buffer_.empty()) return std::exchange(buffer_, {});
    }
  }
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0 && !exit_code_) kill(pid_, number);
}

std::optional<int> ChildProcess::wait(TimeNs limit) {
  if (exit_code_) return exit_code_;
  const TimeNs deadline = monotonic_now() + limit;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd >= 0) {
    // The child's output is read meanwhile, so that a full pipe cannot keep it from ending.
    for (;;) {
      pollfd fds[2] = {{pidfd, POLLIN, 0}, {output_, POLLIN, 0}};
      if (poll(fds, 2, milliseconds_left(deadline)) == 0) break;
      if (fds[0].revents != 0) break;
      if (fds[1].revents != 0 && !read_some(output_, buffer_)) close_fd(output_);
    }
    close(pidfd);
  }
  int status = 0;
  if (waitpid(pid_, &status, pidfd >= 0 ? WNOHANG : 0) != pid_) return std::nullopt;
  exit_code_ = to_exit_code(status);
  return exit_code_;
}

}  // namespace tokenstone::platform
