// The bytes that a server gets: options checked, request bodies written. The fields are those that vLLM's own client
// sends (completions: prompt, max_tokens; chat: messages, max_completion_tokens), but for repetition_penalty, which is
// sent only if given.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "http/url.h"
#include "loadgen/http_target.h"

namespace tokenstone::loadgen {
namespace {

using nlohmann::ordered_json;

Result<ordered_json> parse_object(const std::string& text) {
  if (text.empty()) return ordered_json::object();
  ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return usage_error(
        fmt::format("expected a JSON object like {{\"seed\": 1}} as extra body, found '{}'", text.substr(0, 80)),
        "extra-body");
  }
  return json;
}

Result<ordered_json> completions_prompt(const runtime::RequestSpec& request) {
  if (const auto* text = std::get_if<std::string>(&request.prompt)) return ordered_json(*text);
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.prompt)) return ordered_json(*ids);
  return usage_error("chat messages need --backend openai-chat; the completions endpoint takes text or token ids",
                     "backend");
}

Result<ordered_json> chat_messages(const runtime::RequestSpec& request) {
  ordered_json messages = ordered_json::array();
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    messages.push_back({{"role", "user"}, {"content", *text}});
  } else if (const auto* chat = std::get_if<std::vector<record::ChatMessage>>(&request.prompt)) {
    for (const auto& message : *chat) messages.push_back({{"role", message.role}, {"content", message.content}});
  } else {
    return usage_error("prompts of token ids need --backend openai; the chat endpoint takes text or messages",
                       "backend");
  }
  return messages;
}

void add_sampling(const HttpTargetOptions& options, ordered_json& body) {
  const auto add = [&body](const char* name, const auto& value) {
    if (value) body[name] = *value;
  };
  add("temperature", options.temperature);
  add("top_p", options.top_p);
  add("top_k", options.top_k);
  add("min_p", options.min_p);
  add("frequency_penalty", options.frequency_penalty);
  add("presence_penalty", options.presence_penalty);
  add("repetition_penalty", options.repetition_penalty);
  if (options.backend == HttpBackend::openai) add("logprobs", options.logprobs);
  if (options.ignore_eos) body["ignore_eos"] = true;
}

}  // namespace

std::string HttpTargetOptions::endpoint_or_default() const {
  if (!endpoint.empty()) return endpoint;
  return backend == HttpBackend::openai_chat ? "/v1/chat/completions" : "/v1/completions";
}

Status HttpTargetOptions::validate() const {
  std::vector<std::string> problems;
  const auto check = [&problems](const auto& result) {
    if (!result) problems.push_back(result.error().message);
  };
  check(http::parse_url(base_url));
  check(parse_object(extra_body));
  for (const auto& header : headers) check(http::check_header(header));
  check(http::check_header({"Authorization", "Bearer " + api_key}));
  check(http::check_header({"x-request-id", request_id_prefix}));
  const std::string path = endpoint_or_default();
  const bool chat = backend == HttpBackend::openai_chat;
  const std::string_view ending = chat ? "chat/completions" : "completions";
  if (!path.ends_with(ending) || (!chat && path.ends_with("chat/completions")) ||
      path.find_first_of(" \r\n") != std::string::npos) {
    problems.push_back(fmt::format("expected an --endpoint that ends with {} for back end {}, found '{}'", ending,
                                   chat ? "openai-chat" : "openai", path));
  }
  for (const TimeNs limit : {connect_timeout, first_token_timeout, gap_timeout, total_timeout}) {
    if (limit <= 0) problems.push_back("expected time limits above 0");
  }
  if (max_connecting == 0) problems.push_back("expected max_connecting above 0");
  if (problems.empty()) return {};
  return usage_error(join(problems, "; "));
}

Result<std::string> make_request_body(const HttpTargetOptions& options, const runtime::RequestSpec& request) {
  const bool chat = options.backend == HttpBackend::openai_chat;
  ordered_json body = ordered_json::object();
  if (!options.model.empty()) body["model"] = options.model;
  if (chat) {
    TS_TRY(body["messages"], chat_messages(request));
  } else {
    TS_TRY(body["prompt"], completions_prompt(request));
  }
  body[chat ? "max_completion_tokens" : "max_tokens"] = request.output_len;
  body["stream"] = options.stream;
  if (options.stream) body["stream_options"] = {{"include_usage", true}};
  add_sampling(options, body);
  for (const std::string* extra : {&options.extra_body, &request.extra_body}) {
    TS_TRY(const ordered_json fields, parse_object(*extra));
    body.update(fields);
  }
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tokenstone::loadgen
