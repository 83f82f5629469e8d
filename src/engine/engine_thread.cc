#include "engine/engine_thread.h"

#include "platform/real_loop.h"

namespace tokenstone::engine {

EngineThread::EngineThread(Engine& engine, record::StepSink* steps)
    : loop_(platform::make_real_loop()), engine_loop_(engine.start(*loop_, steps)), thread_([this] { loop_->run(); }) {}

EngineThread::~EngineThread() {
  loop_->stop();
  thread_.join();
}

}  // namespace tokenstone::engine
