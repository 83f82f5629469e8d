// The embedded engine driven on the calling thread, for the in-process benchmarks: submit, run until all is finished.
// Ownership: owns engine and loop. Threads: one (the engine's compute pool aside). Units: ns of the monotonic clock.
#pragma once

#include <memory>
#include <vector>

#include "app/engine_flags.h"
#include "engine/engine.h"
#include "platform/real_loop.h"

namespace tokenstone::app {

struct OfflineResult {
  TimeNs elapsed = 0;               ///< first submission to last finish
  std::uint64_t input_tokens = 0;   ///< of finished requests
  std::uint64_t output_tokens = 0;  ///< received, never asked
  std::uint64_t finished = 0;
};

class OfflineEngine {
 public:
  /// `model` as given by the person; empty: the default shape. All CPUs unless --threads says otherwise: nothing else
  /// runs.
  static Result<std::unique_ptr<OfflineEngine>> create(const EngineFlags& flags, const std::string& model,
                                                       const std::string& tokenizer);

  engine::Engine& engine() { return *engine_; }
  Result<OfflineResult> run(std::vector<runtime::EngineRequest> requests);

 private:
  OfflineEngine() = default;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<platform::RealLoop> loop_;
  std::unique_ptr<runtime::EngineLoop> engine_loop_;
};

}  // namespace tokenstone::app
