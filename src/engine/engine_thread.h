// An engine on a real-time loop of its own, on a thread of its own.
//
// Ownership: borrows the engine and the step sink, which outlive it; owns loop, EngineLoop and thread.
// Threads: construct and destroy on one thread; everything on `engine_loop()` through `loop().post`.
// Failure: none. Destruction stops the loop and waits for the step that is running.
#pragma once

#include <memory>
#include <thread>

#include "engine/engine.h"

namespace tokenstone::engine {

class EngineThread {
 public:
  EngineThread(Engine& engine, record::StepSink* steps);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  Loop& loop() { return *loop_; }
  runtime::EngineLoop& engine_loop() { return *engine_loop_; }

 private:
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<runtime::EngineLoop> engine_loop_;
  std::thread thread_;
};

}  // namespace tokenstone::engine
