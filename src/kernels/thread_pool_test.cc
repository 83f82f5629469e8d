#include "kernels/thread_pool.h"

#include <gtest/gtest.h>

namespace tokenstone::kernels {
namespace {

TEST(ThreadPool, EveryWorkerSeesWhatTheOthersWroteBeforeTheBarrier) {
  for (const std::size_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> written(threads, 0);
    std::vector<int> seen(threads, 0);
    for (int round = 1; round <= 50; ++round) {
      pool.run([&](ThreadPool::Worker& worker) {
        for (int phase = 0; phase < 4; ++phase) {
          written[worker.index()] = round * 10 + phase;
          worker.barrier();
          int sum = 0;
          for (const int w : written) sum += w;
          seen[worker.index()] = sum;
          worker.barrier();
        }
      });
      for (const int s : seen) ASSERT_EQ(s, static_cast<int>(threads) * (round * 10 + 3));
    }
  }
}

TEST(ThreadPool, RangesCoverEverythingOnceInWholeUnits) {
  ThreadPool pool(3);
  for (const std::size_t n : {0, 1, 7, 64, 100})
    for (const std::size_t unit : {1, 2, 8}) {
      std::vector<std::atomic<int>> hits(n);
      pool.run([&](ThreadPool::Worker& worker) {
        const auto range = worker.range(n, unit);
        EXPECT_EQ(range.begin == n ? 0 : range.begin % unit, 0u);
        for (std::size_t i = range.begin; i < range.end; ++i) ++hits[i];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    }
}

}  // namespace
}  // namespace tokenstone::kernels
