// Counts tokens of answers on a thread of its own, so that the loop which stamps arrivals never tokenises.
// Ownership: joins its thread when it goes; every result is posted to the loop, which must still run. Threads: `count`
// on the loop's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/loop.h"

namespace tokenstone::loadgen {

class TokenCounter {
 public:
  TokenCounter(Loop& loop, std::function<std::int64_t(const std::string&)> count);
  ~TokenCounter();
  void count(std::string text, std::move_only_function<void(std::int64_t)> done);

 private:
  struct Job {
    std::string text;
    std::move_only_function<void(std::int64_t)> done;
  };
  void work();

  Loop& loop_;
  std::function<std::int64_t(const std::string&)> count_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tokenstone::loadgen
