// T workers that run the phases of one step together; the caller is worker 0.
//
// What: `run` starts one function on every worker; inside, `barrier` separates phases and `range` cuts work statically.
// Ownership: the pool owns its threads; the function is borrowed for the call. Threads: one caller at a time.
// Waiting: a worker looks for about 30 microseconds, then sleeps in the kernel, so that an idle engine takes no CPU.
// Failure: none; the function must not throw.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tokenstone::kernels {

class ThreadPool {
 public:
  struct Range {
    std::size_t begin, end;
  };
  class Worker {
   public:
    std::size_t index() const { return index_; }
    std::size_t count() const { return pool_->size(); }
    /// Returns when every worker has called it as often; what was written before is visible after.
    void barrier();
    /// This worker's share of [0, n), in multiples of `unit`.
    Range range(std::size_t n, std::size_t unit = 1) const;

   private:
    friend class ThreadPool;
    Worker(ThreadPool* pool, std::size_t index) : pool_(pool), index_(index) {}
    ThreadPool* pool_;
    std::size_t index_;
  };
  using Job = std::function<void(Worker&)>;

  /// Precondition: threads >= 1.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return size_; }
  void run(const Job& job);

 private:
  void work(std::size_t index);
  void arrive_and_wait();

  const std::size_t size_;
  std::vector<std::thread> threads_;
  // Shared. Each on a cache line of its own: they are written by all.
  alignas(64) std::atomic<std::uint32_t> job_generation_{0};
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> barrier_generation_{0};
  // Written by the caller before job_generation_ moves.
  const Job* job_ = nullptr;
  bool stop_ = false;
};

}  // namespace tokenstone::kernels
