#include "loadgen/token_counter.h"

namespace tokenstone::loadgen {

TokenCounter::TokenCounter(Loop& loop, std::function<std::int64_t(const std::string&)> count)
    : loop_(loop), count_(std::move(count)), thread_([this] { work(); }) {}

TokenCounter::~TokenCounter() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TokenCounter::count(std::string text, std::move_only_function<void(std::int64_t)> done) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(text), std::move(done)});
  }
  wake_.notify_one();
}

void TokenCounter::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const std::int64_t tokens = count_(job.text);
    loop_.post([tokens, done = std::move(job.done)]() mutable { done(tokens); });
  }
}

}  // namespace tokenstone::loadgen
