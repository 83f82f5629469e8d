// One request under way: what the engine says of its prompts, turned into the bytes of its answer.
//
// Nothing is written before the engine has accepted the request, so that every refusal has its own status. Ownership:
// borrows the output string given to each call. Threads: the I/O thread. Failure: none; a refusal or an engine error
// becomes an answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api_response.h"
#include "server/engine_bridge.h"
#include "server/http_head.h"
#include "server/metrics.h"

namespace tokenstone::server {

class Generation {
 public:
  struct Setup {
    ResponseWriter::Identity identity;
    AnswerStyle style;
    bool stream = false, include_usage = false;
    std::vector<std::string> echoes;          ///< per prompt: text that comes before the answer; empty without echo
    std::vector<std::int64_t> prompt_tokens;  ///< per prompt
    TimeNs received = 0;                      ///< when the request's body was whole
  };
  explicit Generation(Setup setup);

  void accepted(std::string& out);
  void refused(std::string& out, const Error& error) const;
  /// Takes one output; true when it was the last and the answer is complete.
  bool take(std::string& out, const EngineEvent& event, std::string_view text, ServerMetrics& metrics);
  bool streams() const { return setup_.stream; }
  bool keep_alive() const { return setup_.style.keep_alive && (!setup_.stream || setup_.style.chunked()); }
  std::size_t unfinished() const { return unfinished_; }
  bool touched = false;  ///< has unsent bytes of the current batch

 private:
  struct Choice {
    UsageCounts usage;
    TimeNs first_token = kUnknownTime, last_token = kUnknownTime;
    bool begun = false;  ///< streaming: its role or echo is written
  };
  void observe(Choice& choice, const EngineEvent& event, ServerMetrics& metrics) const;
  void stream_output(std::string& out, const EngineEvent& event, std::string_view text);
  void finish(std::string& out);
  UsageCounts total() const;

  Setup setup_;
  ResponseWriter writer_;
  std::vector<Choice> choices_;
  std::vector<ChoiceText> texts_;  ///< when it does not stream
  std::size_t unfinished_;
  bool failed_ = false;
  std::string event_;  ///< scratch
};

}  // namespace tokenstone::server
