// One planned request, ready to be sent. A Plan (workload) makes them, a Target (runtime) sends them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/types.h"
#include "sched/request.h"

namespace tokenstone::record {

struct ChatMessage {
  std::string role;
  std::string content;
};

struct RequestSpec {
  std::uint32_t index = 0;
  std::string request_id;
  std::string class_name;  ///< chat, generate, summarize, long, or the data set's name
  std::string session;
  TimeNs intended =
      kUnknownTime;  ///< ns from the run's start; unknown in a closed loop: the instant its slot becomes free
  /// Text, token ids, or chat messages.
  std::variant<std::string, std::vector<TokenId>, std::vector<ChatMessage>> prompt;
  std::int64_t prompt_len = -1;     ///< tokens; -1 unknown
  bool prompt_len_nominal = false;  ///< asked, not counted by a tokenizer
  std::int64_t output_len = 16;     ///< asked: max_tokens
  sched::SamplingParams sampling;   ///< for engine targets; HTTP targets send what the run's options say
  std::string extra_body;           ///< JSON object merged into this request's body, or empty
};

}  // namespace tokenstone::record
