// What one stream event of an OpenAI-compatible server says: text, reasoning, tool calls, finish reason, usage, error.
//
// Dialects: completions (`choices[].text`) and chat (`choices[].delta.content`, `.reasoning_content` or `.reasoning`,
// `.tool_calls` or `.function_call`); a whole answer (`choices[].message`) for requests without streaming. Usage may
// stand on any event, beside the choices, without them, or inside one. Unknown keys are ignored, so that vendors'
// additions (costs, heartbeats, the whole message beside the delta) do no harm. An empty finish_reason is none. Bytes
// that are not UTF-8 are passed on as they came: a server may cut a character between two events.
//
// Ownership: the result and its views are valid until the next `parse` and as long as the event's bytes. Steady use
// allocates nothing. Threads: one. Failure: text that is no JSON object gives Kind::malformed (or foreign for other
// JSON values).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenstone::http {

/// -1: not told.
struct Usage {
  std::int64_t prompt_tokens = -1, completion_tokens = -1, cached_tokens = -1;
  bool known() const { return prompt_tokens >= 0 || completion_tokens >= 0; }
};

struct ChoiceDelta {
  std::int64_t index = 0;
  std::string_view text;  ///< delta.content or text
  std::string_view reasoning;
  std::string_view tool_text;  ///< arguments or name of the last tool call
  bool tool_call = false;      ///< a non-empty list of tool calls
  std::string_view finish_reason;
  std::string_view message;  ///< message.content of a whole answer
  std::string_view message_reasoning;
  bool has_token() const { return !text.empty() || !reasoning.empty() || tool_call; }
};

struct StreamDelta {
  enum class Kind : std::uint8_t {
    chunk,      ///< has choices or usage
    error,      ///< an error object
    foreign,    ///< JSON of another meaning
    malformed,  ///< not JSON
  };
  Kind kind = Kind::foreign;
  std::vector<ChoiceDelta> choices;
  Usage usage;
  std::string_view error_message;
  std::string_view error_type;
  std::int64_t error_code = 0;  ///< 0: none told
};

class DeltaParser {
 public:
  const StreamDelta& parse(std::string_view json);

 private:
  StreamDelta delta_;
  std::string scratch_;
};

}  // namespace tokenstone::http
