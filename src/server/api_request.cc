#include "server/api_request.h"

#include <fmt/format.h>

#include "base/text.h"
#include "server/json_fields.h"

namespace tokenstone::server {
namespace {

constexpr std::size_t kMaxPromptsPerRequest = 2048;
constexpr std::size_t kMaxStopStrings = 64;
constexpr std::size_t kMaxStopBytes = 1024;

/// How one field of a body is read into the draft of its request.
template <class Request>
struct FieldReader {
  std::string_view name;
  ApiStatus (*read)(std::string_view name, JsonValue value, Request& draft);
};

/// "Unknown field" with the nearest name that would have been accepted.
template <class Request>
std::unexpected<ApiError> unknown_field(std::string_view name, std::span<const FieldReader<Request>> readers) {
  std::vector<std::string> known;
  for (const auto& reader : readers) known.emplace_back(reader.name);
  for (const ForeignField& field : foreign_fields()) known.emplace_back(field.name);
  std::string message = fmt::format("unknown field '{}'", to_valid_utf8(name));
  if (const auto near = nearest_name(name, known))
    message += fmt::format("; did you mean '{}'?", *near);
  else
    message += "; leave it out";
  return bad_request(std::move(message), std::string(name));
}

template <class Request>
ApiStatus read_field(std::string_view name, JsonValue value, std::span<const FieldReader<Request>> readers,
                     Request& draft) {
  for (const auto& reader : readers)
    if (reader.name == name) return reader.read(name, value, draft);
  const ForeignField* foreign = find_foreign_field(name);
  if (foreign == nullptr) return unknown_field(name, readers);
  if (is_neutral(foreign->neutral, value)) return {};
  return bad_request(
      fmt::format("{} is not supported{}: {}", name,
                  value.is_array() || value.is_object() ? std::string{}
                                                        : " with the value " + std::string(simdjson::minify(value)),
                  foreign->instead),
      std::string(name));
}

template <class Request>
ApiResult<Request> read_object(JsonValue root, std::span<const FieldReader<Request>> readers, Request draft) {
  simdjson::dom::object fields;
  if (root.get(fields) != simdjson::SUCCESS)
    return bad_request(fmt::format("the body must be a JSON object; it is {}", type_name(root)));
  for (const auto [name, value] : fields)
    if (auto status = read_field(name, value, readers, draft); !status)
      return std::unexpected(std::move(status).error());
  return draft;
}

ApiStatus read_prompt(std::string_view name, JsonValue value, GenerationRequest& draft) {
  draft.prompts.clear();  // a field given twice: the last wins
  if (value.is_null()) return {};
  if (value.is_string()) {
    draft.prompts.emplace_back(std::string(value.get_string().value_unsafe()));
    return {};
  }
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return wrong_type(name, "a string, a list of strings, or token ids", value);
  if (list.size() == 0) return bad_request("prompt is an empty list; at least one token is needed", "prompt");
  if (list.at(0).is_number()) {
    std::vector<TokenId> ids;
    if (auto status = read_token_ids(name, value, ids); !status) return status;
    draft.prompts.emplace_back(std::move(ids));
    return {};
  }
  if (list.size() > kMaxPromptsPerRequest)
    return bad_request(fmt::format("prompt holds {} prompts, more than the {} of one request; split it", list.size(),
                                   kMaxPromptsPerRequest),
                       "prompt");
  for (const JsonValue item : list) {
    if (item.is_string()) {
      draft.prompts.emplace_back(std::string(item.get_string().value_unsafe()));
      continue;
    }
    std::vector<TokenId> ids;
    if (!item.is_array()) return wrong_type(name, "all strings or all lists of token ids", item);
    if (auto status = read_token_ids(name, item, ids); !status) return status;
    draft.prompts.emplace_back(std::move(ids));
  }
  return {};
}

ApiStatus read_stop(std::string_view name, JsonValue value, GenerationRequest& draft) {
  std::vector<std::string>& stop = draft.sampling.stop;
  stop.clear();
  if (value.is_null()) return {};
  if (value.is_string()) {
    stop.emplace_back(value.get_string().value_unsafe());
  } else {
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return wrong_type(name, "a string or a list of strings", value);
    if (list.size() > kMaxStopStrings)
      return bad_request(fmt::format("stop holds {} strings; at most {} are taken", list.size(), kMaxStopStrings),
                         "stop");
    for (const JsonValue item : list) {
      if (!item.is_string()) return wrong_type(name, "a list of strings", item);
      stop.emplace_back(item.get_string().value_unsafe());
    }
  }
  for (const std::string& text : stop)
    if (text.empty() || text.size() > kMaxStopBytes)
      return bad_request(fmt::format("stop strings have 1 to {} bytes; one has {}", kMaxStopBytes, text.size()),
                         "stop");
  return {};
}

ApiStatus read_stream_options(std::string_view name, JsonValue value, GenerationRequest& draft) {
  if (value.is_null()) return {};
  simdjson::dom::object fields;
  if (value.get(fields) != simdjson::SUCCESS) return wrong_type(name, "an object", value);
  for (const auto [key, field] : fields) {
    const std::string path = fmt::format("{}.{}", name, key);
    bool ignored = false;
    bool* slot = key == "include_usage"            ? &draft.include_usage
                 : key == "continuous_usage_stats" ? &draft.continuous_usage
                 : key == "include_obfuscation"    ? &ignored
                                                   : nullptr;
    if (slot == nullptr)
      return bad_request(
          fmt::format("unknown field '{}'; stream_options has include_usage and continuous_usage_stats", path), path);
    if (auto status = read_bool(path, field, *slot); !status) return status;
  }
  return {};
}

template <std::int64_t lo, std::int64_t hi, auto member>
ApiStatus read_sampling_integer(std::string_view name, JsonValue value, GenerationRequest& draft) {
  std::optional<std::int64_t> number;
  auto status = read_integer(name, value, lo, hi, number);
  if (number) draft.sampling.*member = static_cast<std::remove_reference_t<decltype(draft.sampling.*member)>>(*number);
  return status;
}

template <auto member>
ApiStatus read_sampling_bool(std::string_view name, JsonValue value, GenerationRequest& draft) {
  return read_bool(name, value, draft.sampling.*member);
}

template <class Request, auto member>
ApiStatus read_text(std::string_view name, JsonValue value, Request& draft) {
  return read_string(name, value, draft.*member);
}

template <class Request, auto member>
ApiStatus read_flag(std::string_view name, JsonValue value, Request& draft) {
  return read_bool(name, value, draft.*member);
}

ApiStatus read_max_tokens(std::string_view name, JsonValue value, GenerationRequest& draft) {
  return read_integer(name, value, 0, std::numeric_limits<std::int32_t>::max(), draft.max_tokens);
}

ApiStatus read_seed(std::string_view name, JsonValue value, GenerationRequest& draft) {
  std::optional<std::int64_t> number;
  auto status = read_integer(name, value, std::numeric_limits<std::int64_t>::min(),
                             std::numeric_limits<std::int64_t>::max(), number);
  if (number) draft.seed = static_cast<std::uint64_t>(*number);
  return status;
}

ApiStatus read_top_p(std::string_view name, JsonValue value, GenerationRequest& draft) {
  double top_p = draft.sampling.top_p;
  if (auto status = read_number(name, value, 0, 1, top_p); !status) return status;
  if (top_p == 0)
    return bad_request("top_p must be above 0 and at most 1; it is 0 (use temperature 0 for greedy)", "top_p");
  draft.sampling.top_p = top_p;
  return {};
}

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
using Generation = GenerationRequest;
using Sampling = sched::SamplingParams;

/// Fields that completions and chat share.
constexpr FieldReader<Generation> kShared[] = {
    {"model", read_text<Generation, &Generation::model>},
    {"max_tokens", read_max_tokens},
    {"temperature", [](std::string_view name, JsonValue value,
                       Generation& draft) { return read_number(name, value, 0, 100, draft.sampling.temperature); }},
    {"top_p", read_top_p},
    {"top_k", read_sampling_integer<-1, kMaxInt, &Sampling::top_k>},
    {"min_p", [](std::string_view name, JsonValue value,
                 Generation& draft) { return read_number(name, value, 0, 1, draft.sampling.min_p); }},
    {"seed", read_seed},
    {"stop", read_stop},
    {"stop_token_ids", [](std::string_view name, JsonValue value,
                          Generation& draft) { return read_token_ids(name, value, draft.sampling.stop_token_ids); }},
    {"ignore_eos", read_sampling_bool<&Sampling::ignore_eos>},
    {"min_tokens", read_sampling_integer<0, kMaxInt, &Sampling::min_tokens>},
    {"include_stop_str_in_output", read_sampling_bool<&Sampling::include_stop_str_in_output>},
    {"skip_special_tokens", read_sampling_bool<&Sampling::skip_special_tokens>},
    {"stream",
     [](std::string_view name, JsonValue value, Generation& draft) { return read_bool(name, value, draft.stream); }},
    {"stream_options", read_stream_options},
    {"echo",
     [](std::string_view name, JsonValue value, Generation& draft) { return read_bool(name, value, draft.echo); }},
    {"add_special_tokens", read_flag<Generation, &Generation::add_special_tokens>},
    {"cache_salt", read_text<Generation, &Generation::cache_salt>},
    {"request_id", read_text<Generation, &Generation::request_id>},
};

template <std::size_t extra>
std::vector<FieldReader<Generation>> with_shared(const FieldReader<Generation> (&own)[extra]) {
  std::vector<FieldReader<Generation>> all(std::begin(own), std::end(own));
  all.insert(all.end(), std::begin(kShared), std::end(kShared));
  return all;
}

const std::vector<FieldReader<Generation>>& completion_fields() {
  static const auto fields = with_shared({{"prompt", read_prompt}});
  return fields;
}

const std::vector<FieldReader<Generation>>& chat_fields() {
  static const auto fields = with_shared({
      {"messages", [](std::string_view name, JsonValue value,
                      Generation& draft) { return read_messages(name, value, draft.messages); }},
      {"max_completion_tokens", read_max_tokens},
  });
  return fields;
}

constexpr FieldReader<TokenizeRequest> kTokenizeFields[] = {
    {"model", read_text<TokenizeRequest, &TokenizeRequest::model>},
    {"prompt",
     [](std::string_view name, JsonValue value, TokenizeRequest& draft) -> ApiStatus {
       if (value.is_null()) return {};
       return read_string(name, value, draft.prompt.emplace());
     }},
    {"messages", [](std::string_view name, JsonValue value,
                    TokenizeRequest& draft) { return read_messages(name, value, draft.messages); }},
    {"add_special_tokens", read_flag<TokenizeRequest, &TokenizeRequest::add_special_tokens>},
    {"return_token_strs", [](std::string_view name, JsonValue value,
                             TokenizeRequest& draft) { return read_bool(name, value, draft.return_token_strs); }},
};

constexpr FieldReader<DetokenizeRequest> kDetokenizeFields[] = {
    {"model", read_text<DetokenizeRequest, &DetokenizeRequest::model>},
    {"tokens", [](std::string_view name, JsonValue value,
                  DetokenizeRequest& draft) { return read_token_ids(name, value, draft.tokens); }},
};

ApiStatus check_generation(const GenerationRequest& request) {
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens)
    return bad_request(fmt::format("min_tokens must not exceed max_tokens; they are {} and {}",
                                   request.sampling.min_tokens, *request.max_tokens),
                       "min_tokens");
  if (!request.stream && (request.include_usage || request.continuous_usage))
    return bad_request("stream_options needs \"stream\": true", "stream_options");
  if (request.chat && request.echo) return bad_request("echo is not supported for chat; leave it out", "echo");
  return {};
}

}  // namespace

struct RequestDecoder::Impl {
  simdjson::dom::parser shared_parser;
  std::optional<simdjson::dom::parser> large_parser;  // a large body's buffers are not kept

  ApiResult<JsonValue> parse(std::string& body) {
    constexpr std::size_t kLarge = 1 << 20;
    large_parser.reset();
    simdjson::dom::parser& parser = body.size() > kLarge ? large_parser.emplace() : shared_parser;
    JsonValue root;
    const auto code = parser.parse(body).get(root);
    if (code == simdjson::SUCCESS) return root;
    return bad_request(fmt::format("the body is not valid JSON: {}", simdjson::error_message(code)));
  }

  template <class Request>
  ApiResult<Request> decode(std::string& body, std::span<const FieldReader<Request>> readers, Request draft) {
    auto root = parse(body);
    if (!root) return std::unexpected(std::move(root).error());
    return read_object<Request>(*root, readers, std::move(draft));
  }
};

RequestDecoder::RequestDecoder() : impl_(std::make_unique<Impl>()) {}
RequestDecoder::~RequestDecoder() = default;

ApiResult<GenerationRequest> RequestDecoder::completion(std::string& body) {
  auto request = impl_->decode<GenerationRequest>(body, completion_fields(), GenerationRequest{.chat = false});
  if (!request) return request;
  if (request->prompts.empty())
    return bad_request("prompt is missing; give a string, a list of strings, or token ids", "prompt");
  if (auto status = check_generation(*request); !status) return std::unexpected(std::move(status).error());
  return request;
}

ApiResult<GenerationRequest> RequestDecoder::chat(std::string& body) {
  auto request = impl_->decode<GenerationRequest>(body, chat_fields(), GenerationRequest{.chat = true});
  if (!request) return request;
  if (request->messages.empty())
    return bad_request("messages is missing; give a list of messages with role and content", "messages");
  if (auto status = check_generation(*request); !status) return std::unexpected(std::move(status).error());
  return request;
}

ApiResult<TokenizeRequest> RequestDecoder::tokenize(std::string& body) {
  auto request = impl_->decode<TokenizeRequest>(body, kTokenizeFields, TokenizeRequest{});
  if (request && !request->prompt && request->messages.empty())
    return bad_request("prompt is missing; give a string in prompt, or messages", "prompt");
  return request;
}

ApiResult<DetokenizeRequest> RequestDecoder::detokenize(std::string& body) {
  return impl_->decode<DetokenizeRequest>(body, kDetokenizeFields, DetokenizeRequest{});
}

}  // namespace tokenstone::server
