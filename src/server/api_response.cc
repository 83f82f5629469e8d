#include "server/api_response.h"

#include "server/json_text.h"

namespace tokenstone::server {
namespace {

void append_finish(std::string& out, sched::FinishReason reason) {
  out += ",\"logprobs\":null,\"finish_reason\":";
  if (reason == sched::FinishReason::none)
    out += "null";
  else
    append_json_string(out, finish_reason_name(reason));
}

void append_stop_reason(std::string& out, std::string_view stop_reason) {
  out += ",\"stop_reason\":";
  if (stop_reason.empty())
    out += "null";
  else
    append_json_string(out, stop_reason);
}

}  // namespace

std::string_view finish_reason_name(sched::FinishReason reason) {
  switch (reason) {
    case sched::FinishReason::stop:
      return "stop";
    case sched::FinishReason::length:
      return "length";
    case sched::FinishReason::abort:
      return "abort";
    case sched::FinishReason::error:
      return "error";
    case sched::FinishReason::none:
      break;
  }
  return "";
}

ResponseWriter::ResponseWriter(Identity identity) : identity_(std::move(identity)) {
  identity_json_ = ",\"created\":";
  append_integer(identity_json_, identity_.created);
  identity_json_ += ",\"model\":";
  append_json_untrusted(identity_json_, identity_.model);
  event_head_ = "data: {\"id\":";
  append_json_untrusted(event_head_, identity_.id);
  event_head_ += identity_.chat ? ",\"object\":\"chat.completion.chunk\"" : ",\"object\":\"text_completion\"";
  event_head_ += identity_json_;
  event_head_ += ",\"choices\":[";
}

void ResponseWriter::append_usage(std::string& out, const UsageCounts& usage, bool with_details) const {
  out += "\"usage\":{\"prompt_tokens\":";
  append_integer(out, usage.prompt);
  out += ",\"total_tokens\":";
  append_integer(out, usage.prompt + usage.completion);
  out += ",\"completion_tokens\":";
  append_integer(out, usage.completion);
  if (with_details) {
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    append_integer(out, usage.cached);
    out += '}';
  }
  out += '}';
}

void ResponseWriter::append_event_end(std::string& out, const UsageCounts& usage) const {
  out += "}]";
  if (identity_.continuous_usage) {
    out += ',';
    append_usage(out, usage, false);
  } else if (!identity_.chat) {
    out += ",\"usage\":null";
  }
  out += "}\n\n";
}

void ResponseWriter::append_role_event(std::string& out, std::size_t index, const UsageCounts& usage) const {
  out += event_head_;
  out += "{\"index\":";
  append_integer(out, static_cast<std::int64_t>(index));
  out += ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}";
  append_finish(out, sched::FinishReason::none);
  append_event_end(out, usage);
}

void ResponseWriter::append_delta_event(std::string& out, const ChoiceDelta& delta, const UsageCounts& usage) const {
  out += event_head_;
  out += "{\"index\":";
  append_integer(out, static_cast<std::int64_t>(delta.index));
  out += identity_.chat ? ",\"delta\":{\"content\":" : ",\"text\":";
  append_json_string(out, delta.text);
  if (identity_.chat) out += '}';
  append_finish(out, delta.reason);
  // vLLM's chat stream has stop_reason in the last event only, its completions stream in every one.
  if (!identity_.chat || delta.reason != sched::FinishReason::none) append_stop_reason(out, delta.stop_reason);
  append_event_end(out, usage);
}

void ResponseWriter::append_usage_event(std::string& out, const UsageCounts& usage) const {
  out += event_head_;
  out += "],";
  append_usage(out, usage, true);
  out += "}\n\n";
}

void ResponseWriter::append_done_event(std::string& out) { out += "data: [DONE]\n\n"; }

std::string ResponseWriter::body(const std::vector<ChoiceText>& choices, const UsageCounts& usage) const {
  std::string out = "{\"id\":";
  append_json_untrusted(out, identity_.id);
  out += identity_.chat ? ",\"object\":\"chat.completion\"" : ",\"object\":\"text_completion\"";
  out += identity_json_;
  out += ",\"choices\":[";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    out += i == 0 ? "{\"index\":" : ",{\"index\":";
    append_integer(out, static_cast<std::int64_t>(i));
    out += identity_.chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"text\":";
    append_json_string(out, choices[i].text);
    if (identity_.chat) out += '}';
    append_finish(out, choices[i].reason);
    append_stop_reason(out, choices[i].stop_reason);
    out += '}';
  }
  out += "],";
  append_usage(out, usage, true);
  out += '}';
  return out;
}

}  // namespace tokenstone::server
