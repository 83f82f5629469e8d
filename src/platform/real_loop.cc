#include "platform/real_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <mutex>

#include "base/check.h"

namespace tokenstone::platform {
namespace {

TimeNs read_clock(clockid_t clock) {
  timespec ts{};
  clock_gettime(clock, &ts);
  return static_cast<TimeNs>(ts.tv_sec) * kSecond + ts.tv_nsec;
}

std::uint32_t to_epoll(Readiness interest) {
  return (interest.readable ? EPOLLIN | EPOLLRDHUP : 0u) | (interest.writable ? EPOLLOUT : 0u);
}

Readiness from_epoll(std::uint32_t events) {
  return Readiness{.readable = (events & (EPOLLIN | EPOLLRDHUP)) != 0,
                   .writable = (events & EPOLLOUT) != 0,
                   .hangup = (events & (EPOLLERR | EPOLLHUP)) != 0};
}

class EpollLoop final : public RealLoop {
 public:
  EpollLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    TS_CHECK(epoll_ >= 0 && wake_ >= 0, "no epoll or eventfd: the limit of open files is too low");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = pack(wake_, 0);
    TS_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0, "cannot watch the eventfd");
  }
  ~EpollLoop() override {
    close(wake_);
    close(epoll_);
  }

  TimeNs now() const override { return monotonic_now(); }

  TimerId at(TimeNs t, Callback fn) override {
    const std::uint64_t order = next_order_++;
    timers_.emplace(order, std::move(fn));
    heap_.push_back({t, order});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return TimerId{order};
  }

  void cancel(TimerId timer) override { timers_.erase(timer.value); }

  void watch(int fd, Readiness interest, IoCallback fn) override {
    Watch& watch = watches_[fd];
    const bool known = watch.fn != nullptr;
    if (!known) watch.generation = ++next_generation_;
    watch.fn = std::make_shared<IoCallback>(std::move(fn));
    set_interest(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, interest, watch.generation);
  }

  void rewatch(int fd, Readiness interest) override {
    const auto found = watches_.find(fd);
    TS_CHECK(found != watches_.end(), "rewatch of an fd that is not watched");
    set_interest(EPOLL_CTL_MOD, fd, interest, found->second.generation);
  }

  void unwatch(int fd) override {
    if (watches_.erase(fd) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  }

  void post(Callback fn) override {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      first = posted_.empty();
      posted_.push_back(std::move(fn));
    }
    if (first) wake();
  }

  void stop() override {
    stop_.store(true, std::memory_order_release);
    wake();
  }

  void run_until(TimeNs t) override {
    while (!stop_.exchange(false, std::memory_order_acq_rel)) {
      const TimeNs started = now();
      run_posted();
      run_due_timers();
      note_round(now() - started);
      if (now() >= t) return;
      wait_and_dispatch(t);
    }
  }

  LoopHealth health() const override { return health_; }
  void reset_health() override { health_ = {}; }

 private:
  struct Watch {
    std::shared_ptr<IoCallback> fn;  // shared: a callback may unwatch its own fd while it runs
    std::uint32_t generation = 0;    // an event of a closed fd must not reach the fd's next owner
  };
  struct Due {
    TimeNs t;
    std::uint64_t order;
  };
  static bool later(const Due& a, const Due& b) { return a.t != b.t ? a.t > b.t : a.order > b.order; }
  static std::uint64_t pack(int fd, std::uint32_t generation) {
    return (static_cast<std::uint64_t>(generation) << 32) | static_cast<std::uint32_t>(fd);
  }

  void set_interest(int operation, int fd, Readiness interest, std::uint32_t generation) {
    epoll_event event{};
    event.events = to_epoll(interest);
    event.data.u64 = pack(fd, generation);
    TS_CHECK(epoll_ctl(epoll_, operation, fd, &event) == 0, "the fd cannot be watched");
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  }

  void run_posted() {
    {
      std::lock_guard lock(mutex_);
      running_posted_.swap(posted_);
    }
    for (Callback& fn : running_posted_) fn();
    running_posted_.clear();
  }

  void run_due_timers() {
    const TimeNs t = now();
    while (!heap_.empty() && heap_.front().t <= t) {
      const std::uint64_t order = heap_.front().order;
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      if (auto node = timers_.extract(order); !node.empty()) node.mapped()();
      if (stop_.load(std::memory_order_relaxed)) return;
    }
  }

  void drop_cancelled_heads() {
    while (!heap_.empty() && !timers_.contains(heap_.front().order)) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    }
  }

  void wait_and_dispatch(TimeNs limit) {
    drop_cancelled_heads();
    TimeNs until = limit;
    if (!heap_.empty()) until = std::min(until, heap_.front().t);
    const int ready = wait(until);
    const TimeNs started = now();
    for (int i = 0; i < ready; ++i) {
      const int fd = static_cast<int>(events_[i].data.u64 & 0xFFFFFFFFu);
      if (fd == wake_) {
        drain_wake();
        continue;
      }
      const auto found = watches_.find(fd);
      if (found == watches_.end() || found->second.generation != events_[i].data.u64 >> 32) continue;
      const std::shared_ptr<IoCallback> fn = found->second.fn;
      (*fn)(from_epoll(events_[i].events));
    }
    note_round(now() - started);
  }

  int wait(TimeNs until) {
    timespec timeout{};
    timespec* limit = nullptr;
    if (until != kNever) {
      const TimeNs left = std::max<TimeNs>(0, until - now());
      timeout = {static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
      limit = &timeout;
    }
    const int ready = epoll_pwait2(epoll_, events_.data(), static_cast<int>(events_.size()), limit, nullptr);
    TS_CHECK(ready >= 0 || errno == EINTR, "epoll_pwait2 failed: Linux 5.11 or newer is needed");
    return std::max(0, ready);
  }

  void drain_wake() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(wake_, &count, sizeof count);
  }

  void note_round(TimeNs length) {
    ++health_.rounds;
    health_.longest_round_ns = std::max(health_.longest_round_ns, length);
  }

  // The loop's thread only:
  int epoll_;
  int wake_;
  std::uint64_t next_order_ = 1;
  std::uint32_t next_generation_ = 0;
  std::vector<Due> heap_;
  std::unordered_map<std::uint64_t, Callback> timers_;
  std::unordered_map<int, Watch> watches_;
  std::array<epoll_event, 512> events_{};
  std::vector<Callback> running_posted_;
  LoopHealth health_;
  // Shared:
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<Callback> posted_;
};

}  // namespace

TimeNs monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
TimeNs wall_now() { return read_clock(CLOCK_REALTIME); }

std::unique_ptr<RealLoop> make_real_loop() { return std::make_unique<EpollLoop>(); }

}  // namespace tokenstone::platform
