#include "http/delta_parser.h"

#include "http/json_cursor.h"

namespace tokenstone::http {
namespace {

bool read_usage(JsonCursor& json, Usage& usage) {
  if (json.peek() != '{') return json.skip();
  return json.object([&](std::string_view key) {
    if (key == "prompt_tokens") return json.integer_or_skip(usage.prompt_tokens);
    if (key == "completion_tokens") return json.integer_or_skip(usage.completion_tokens);
    if (key == "prompt_tokens_details" && json.peek() == '{') {
      return json.object([&](std::string_view detail) {
        return detail == "cached_tokens" ? json.integer_or_skip(usage.cached_tokens) : json.skip();
      });
    }
    return json.skip();
  });
}

/// {"name": ..., "arguments": ...}, the arguments wanted, else the name.
bool read_function(JsonCursor& json, ChoiceDelta& choice) {
  if (json.peek() != '{') return json.skip();
  std::string_view name;
  std::string_view arguments;
  const bool whole = json.object([&](std::string_view key) {
    if (key == "name") return json.string_or_skip(name);
    if (key == "arguments") return json.string_or_skip(arguments);
    return json.skip();
  });
  if (!name.empty() || !arguments.empty()) choice.tool_text = arguments.empty() ? name : arguments;
  return whole;
}

bool read_tool_calls(JsonCursor& json, ChoiceDelta& choice) {
  if (json.peek() != '[') return json.skip();
  return json.array([&] {
    choice.tool_call = true;
    if (json.peek() != '{') return json.skip();
    return json.object(
        [&](std::string_view key) { return key == "function" ? read_function(json, choice) : json.skip(); });
  });
}

bool read_delta(JsonCursor& json, ChoiceDelta& choice) {
  if (json.peek() != '{') return json.skip();
  std::string_view reasoning;  // vLLM has had both names, and sends both at once in some versions
  const bool whole = json.object([&](std::string_view key) {
    if (key == "content") return json.string_or_skip(choice.text);
    if (key == "reasoning_content") return json.string_or_skip(choice.reasoning);
    if (key == "reasoning") return json.string_or_skip(reasoning);
    if (key == "tool_calls") return read_tool_calls(json, choice);
    if (key == "function_call" && json.peek() == '{') {
      choice.tool_call = true;
      return read_function(json, choice);
    }
    return json.skip();
  });
  if (choice.reasoning.empty()) choice.reasoning = reasoning;
  return whole;
}

bool read_message(JsonCursor& json, ChoiceDelta& choice) {
  if (json.peek() != '{') return json.skip();
  return json.object([&](std::string_view key) {
    if (key == "content") return json.string_or_skip(choice.message);
    if (key == "reasoning_content" || key == "reasoning") return json.string_or_skip(choice.message_reasoning);
    return json.skip();
  });
}

bool read_choice(JsonCursor& json, StreamDelta& delta) {
  if (json.peek() != '{') return json.skip();
  ChoiceDelta& choice = delta.choices.emplace_back();
  return json.object([&](std::string_view key) {
    if (key == "index") return json.integer_or_skip(choice.index);
    if (key == "text") return json.string_or_skip(choice.text);
    if (key == "delta") return read_delta(json, choice);
    if (key == "message") return read_message(json, choice);
    if (key == "finish_reason") return json.string_or_skip(choice.finish_reason);
    if (key == "usage") return read_usage(json, delta.usage);
    return json.skip();
  });
}

/// OpenAI's form {"error": {"message", "type", "code"}}, a bare text, or anything else that is not null, false or "".
bool read_error(JsonCursor& json, StreamDelta& delta, bool& is_error) {
  const char first = json.peek();
  if (first == '"') {
    const bool whole = json.string(delta.error_message);
    is_error = !delta.error_message.empty();
    return whole;
  }
  is_error = first != 'n' && first != 'f';
  if (first != '{') return json.skip();
  return json.object([&](std::string_view key) {
    if (key == "message") return json.string_or_skip(delta.error_message);
    if (key == "type") return json.string_or_skip(delta.error_type);
    if (key == "code") return json.integer_or_skip(delta.error_code);
    return json.skip();
  });
}

/// Fields at the top that make an error only together with `"object": "error"` (older vLLM).
struct FlatError {
  std::string_view object, message, type;
  std::int64_t code = 0;
};

bool read_top(JsonCursor& json, StreamDelta& delta) {
  bool chunk = false;
  bool error = false;
  FlatError flat;
  const bool whole = json.object([&](std::string_view key) {
    if (key == "choices" && json.peek() == '[') {
      chunk = true;
      return json.array([&] { return read_choice(json, delta); });
    }
    if (key == "usage") return read_usage(json, delta.usage);
    if (key == "error") return read_error(json, delta, error);
    if (key == "object") return json.string_or_skip(flat.object);
    if (key == "message") return json.string_or_skip(flat.message);
    if (key == "type") return json.string_or_skip(flat.type);
    if (key == "code") return json.integer_or_skip(flat.code);
    return json.skip();
  });
  if (!error && flat.object == "error") {
    error = true;
    delta.error_message = flat.message;
    delta.error_type = flat.type;
    delta.error_code = flat.code;
  }
  if (error) {
    delta.kind = StreamDelta::Kind::error;
  } else if (chunk || delta.usage.known()) {
    delta.kind = StreamDelta::Kind::chunk;
  }
  return whole;
}

}  // namespace

const StreamDelta& DeltaParser::parse(std::string_view text) {
  delta_.kind = StreamDelta::Kind::foreign;
  delta_.choices.clear();
  delta_.usage = {};
  delta_.error_message = delta_.error_type = {};
  delta_.error_code = 0;
  if (scratch_.size() < text.size()) scratch_.resize(text.size());
  JsonCursor json(text, scratch_.data());
  const bool whole = json.peek() == '{' ? read_top(json, delta_) : json.skip();
  if (!whole || !json.at_end()) {
    delta_.kind = StreamDelta::Kind::malformed;
    delta_.choices.clear();
    delta_.usage = {};
  }
  return delta_;
}

}  // namespace tokenstone::http
