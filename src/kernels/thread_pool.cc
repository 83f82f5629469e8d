#include "kernels/thread_pool.h"

#include "base/check.h"

namespace tokenstone::kernels {
namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Looks a while, then sleeps, until `value` is no longer `old`. A pause takes 40 to 140 cycles: about 30 microseconds
/// in all.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  constexpr int kSpins = 1000;
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(std::size_t threads) : size_(threads) {
  TS_CHECK(threads >= 1, "a thread pool needs at least one worker");
  for (std::size_t i = 1; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  job_generation_.fetch_add(1, std::memory_order_release);
  job_generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const Job& job) {
  job_ = &job;
  if (size_ > 1) {
    job_generation_.fetch_add(1, std::memory_order_release);
    job_generation_.notify_all();
  }
  Worker caller(this, 0);
  job(caller);
  arrive_and_wait();
}

void ThreadPool::work(std::size_t index) {
  std::uint32_t seen = 0;
  while (true) {
    wait_for_change(job_generation_, seen);
    ++seen;
    if (stop_) return;
    Worker worker(this, index);
    (*job_)(worker);
    arrive_and_wait();
  }
}

void ThreadPool::arrive_and_wait() {
  if (size_ == 1) return;
  const std::uint32_t generation = barrier_generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    barrier_generation_.fetch_add(1, std::memory_order_release);
    barrier_generation_.notify_all();
  } else {
    wait_for_change(barrier_generation_, generation);
  }
}

void ThreadPool::Worker::barrier() { pool_->arrive_and_wait(); }

ThreadPool::Range ThreadPool::Worker::range(std::size_t n, std::size_t unit) const {
  const std::size_t units = (n + unit - 1) / unit;
  const auto bound = [&](std::size_t i) { return std::min(n, units * i / count() * unit); };
  return {bound(index_), bound(index_ + 1)};
}

}  // namespace tokenstone::kernels
