// A decode step of the scheduler allocates nothing: this binary's operator new counts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "sched/scheduler_test_support.h"

// Sanitizers bring an operator new of their own, which must stay in place.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::size_t allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tokenstone::sched {
namespace {

TEST(SchedulerAllocation, SteadyStateAllocatesNothing) {
  SchedulerConfig config = small_config(4096, 16);
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 8192;
  Engine engine(config);
  for (std::uint64_t id = 1; id <= 256; ++id) engine.add(request(id, run_of(static_cast<TokenId>(id * 1000), 20), 200));
  StepResult result;
  const auto step = [&] {
    const StepPlan& plan = engine.scheduler.schedule(0);
    result.tokens.assign(plan.rows.size(), 5);
    engine.scheduler.apply(result);
  };
  step();
  step();
  const std::size_t before = allocations;
  for (int i = 0; i < 150; ++i) step();  // crosses block borders, publishes blocks
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(engine.scheduler.counts().running, 256u);
}

}  // namespace
}  // namespace tokenstone::sched
#endif
