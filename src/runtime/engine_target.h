// The embedded engine as a Target. The engine may run on a loop of its own (another thread, real time) or on the
// client's own loop (virtual time, or a test): with two loops calls are posted across, with one they are direct.
//
// In-process semantics: `sent` is the submission, `first_byte` equals the first token, each engine output with tokens
// is one event whose `arrived` is the end of the step and `parsed` the moment the client loop saw it.
#pragma once

#include <memory>

#include "base/loop.h"
#include "runtime/engine_loop.h"
#include "runtime/target.h"

namespace tokenstone::runtime {

/// Prompt text into token ids, for targets that take ids. Thread-safe. Chat messages are rendered by the model's
/// template.
class PromptEncoder {
 public:
  virtual ~PromptEncoder() = default;
  virtual Result<std::vector<TokenId>> encode(const RequestSpec& request) const = 0;
};

/// The target borrows all of them and is destroyed before them, on the client loop's thread; with two loops the engine
/// loop then still runs, or never runs again. A refused request ends with `http_status` 400, as the server would answer
/// it. Text that a sequence's end sets free comes as an event with 0 tokens. `encoder` may be null when every prompt is
/// token ids. `engine_loop` is the loop that `engine` runs on.
std::unique_ptr<Target> make_engine_target(TargetInfo info, EngineLoop& engine, Loop& engine_loop, Loop& client_loop,
                                           const PromptEncoder* encoder);

}  // namespace tokenstone::runtime
