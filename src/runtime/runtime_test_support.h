// What the runtime's tests share: an executor and an output processor of known behaviour, and sinks that remember.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/virtual_loop.h"
#include "runtime/engine_loop.h"
#include "sched/scheduler.h"

namespace tokenstone::runtime {

inline sched::SchedulerConfig test_config() {
  sched::SchedulerConfig config;
  config.num_blocks = 32;
  config.block_size = 4;
  config.max_model_len = 100;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 64;
  config.eos_token_ids = {0};
  return config;
}

/// A step lasts `step_ns`; tokens come from `choose`, by default 1, 2, 3 ... by output position.
class FakeExecutor final : public Executor {
 public:
  const sched::StepResult& execute(const sched::StepPlan& plan, TimeNs) override {
    if (on_execute) on_execute();
    result_.tokens.clear();
    for (const auto& row : plan.rows) result_.tokens.push_back(row.samples ? choose(row) : kNoToken);
    result_.duration_ns = step_ns;
    result_.forward_ns = 7;
    result_.sampling_ns = 3;
    return result_;
  }
  bool is_real_time() const override { return real_time; }

  TimeNs step_ns = 10;
  bool real_time = false;
  std::function<void()> on_execute;
  std::function<TokenId(const sched::PlanRow&)> choose = [](const sched::PlanRow& row) {
    return static_cast<TokenId>(row.num_output_tokens + 1);
  };

 private:
  sched::StepResult result_;
};

/// Token n is the letter 'a' + n - 1. Holds everything back that may begin the one stop string "cd".
class LetterProcessor final : public OutputProcessor {
 public:
  void start(SeqId seq, const sched::SamplingParams&) override { held.emplace(seq, ""); }
  Piece push(SeqId seq, TokenId token) override {
    std::string& pending = held.at(seq);
    pending += static_cast<char>('a' + token - 1);
    if (pending.ends_with("cd"))
      return {.text = pending.substr(0, pending.size() - 2), .stopped = true, .stop_reason = "cd"};
    Piece piece{.text = pending};
    pending.clear();
    if (piece.text.ends_with("c")) {
      piece.text.pop_back();
      pending = "c";
    }
    return piece;
  }
  std::string finish(SeqId seq) override { return held.extract(seq).mapped(); }

  std::map<SeqId, std::string> held;
};

struct RememberingSink final : EngineSink {
  void on_output(const EngineOutput& output) override {
    at.push_back(output.at);
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    text += output.text;
    timing = *output.timing;
    if (output.finished) {
      ++finishes;
      reason = output.reason;
      stop_reason = output.stop_reason;
    }
    if (then) then(output);
  }
  std::vector<TimeNs> at;
  std::vector<TokenId> tokens;
  std::string text, stop_reason;
  EngineTiming timing;
  int finishes = 0;
  sched::FinishReason reason = sched::FinishReason::none;
  std::function<void(const EngineOutput&)> then;
};

struct RememberingSteps final : record::StepSink {
  void on_step(const record::StepRecord& step) override { all.push_back(step); }
  std::vector<record::StepRecord> all;
};

inline EngineRequest engine_request(std::uint32_t prompt_tokens, std::int32_t max_tokens, TokenId first = 1000) {
  EngineRequest request;
  for (std::uint32_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(first + static_cast<TokenId>(i));
  request.sampling.max_tokens = max_tokens;
  return request;
}

}  // namespace tokenstone::runtime
