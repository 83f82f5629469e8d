#include "server/prompt_builder.h"

#include <fmt/format.h>

#include "base/rng.h"

namespace tokenstone::server {
namespace {

constexpr std::int32_t kDefaultCompletionTokens = 16;  // OpenAI's and vLLM's default for completions

/// FNV-1a; 0 means "no salt" to the engine.
std::uint64_t salt_of(std::string_view text) {
  if (text.empty()) return 0;
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash == 0 ? 1 : hash;
}

}  // namespace

ApiStatus PromptBuilder::check_model(const std::string& name) const {
  if (name.empty() || std::ranges::find(model_.names, name) != model_.names.end()) return {};
  return refuse(
      404,
      fmt::format("The model `{}` does not exist; this server serves `{}`.", name, fmt::join(model_.names, "`, `")),
      "model");
}

std::vector<TokenId> PromptBuilder::text_tokens(std::string_view text, bool add_special) const {
  return model_.tokenizer->encode(text, {.add_special = add_special, .parse_special = true});
}

/// A rendered chat holds its special tokens as text; one that begins with the begin-of-text token gets no second one.
ApiResult<std::vector<TokenId>> PromptBuilder::chat_tokens(std::span<const token::ChatTurn> turns,
                                                           bool add_special) const {
  if (!model_.chat_family) return bad_request(model_.chat_family.error().message, "messages");
  const auto text = token::render_chat(*model_.chat_family, turns);
  if (!text) return bad_request(text.error().message, "messages");
  std::vector<TokenId> ids = text_tokens(*text, add_special);
  const TokenId bos = model_.tokenizer->bos();
  if (add_special && bos != kNoToken && ids.size() >= 2 && ids[0] == bos && ids[1] == bos) ids.erase(ids.begin());
  return ids;
}

ApiResult<std::vector<std::vector<TokenId>>> PromptBuilder::all_tokens(const GenerationRequest& request) const {
  std::vector<std::vector<TokenId>> all;
  if (request.chat) {
    auto tokens = chat_tokens(request.messages, request.add_special_tokens);
    if (!tokens) return std::unexpected(std::move(tokens).error());
    all.push_back(*std::move(tokens));
    return all;
  }
  for (const PromptInput& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    all.push_back(text != nullptr ? text_tokens(*text, request.add_special_tokens) : std::get<1>(prompt));
  }
  return all;
}

ApiStatus PromptBuilder::check_tokens(std::span<const TokenId> tokens) const {
  if (tokens.empty()) return bad_request("the prompt has no tokens; at least one is needed", "prompt");
  for (const TokenId token : tokens)
    if (token < 0 || token >= model_.vocab_size)
      return bad_request(
          fmt::format("token id {} is outside of the model's vocabulary of {} tokens", token, model_.vocab_size),
          "prompt");
  return {};
}

ApiResult<std::int32_t> PromptBuilder::max_tokens(const GenerationRequest& request, std::size_t prompt_tokens) const {
  const std::string_view param = request.chat ? "messages" : "prompt";
  const auto context = static_cast<std::int64_t>(model_.max_model_len);
  const auto prompt = static_cast<std::int64_t>(prompt_tokens);
  const std::int64_t rest = context - prompt;
  if (rest < 1)
    return bad_request(
        fmt::format(
            "This model's maximum context length is {} tokens. However, your prompt has {} tokens and leaves no "
            "room for an answer. Please shorten it.",
            context, prompt),
        std::string(param));
  if (!request.max_tokens)
    return static_cast<std::int32_t>(request.chat ? rest : std::min<std::int64_t>(rest, kDefaultCompletionTokens));
  if (*request.max_tokens > rest)
    return bad_request(
        fmt::format("This model's maximum context length is {} tokens. However, you requested {} tokens ({} in the "
                    "prompt, {} for the answer). Please shorten the prompt or ask for less.",
                    context, prompt + *request.max_tokens, prompt, *request.max_tokens),
        std::string(param));
  return static_cast<std::int32_t>(*request.max_tokens);
}

/// Requests that bring no seed differ from each other, and a server started again with the same seed repeats them.
std::uint64_t PromptBuilder::next_seed() {
  const auto drawn =
      philox4x32({static_cast<std::uint32_t>(seeds_drawn_), static_cast<std::uint32_t>(seeds_drawn_ >> 32),
                  static_cast<std::uint32_t>(streams::sampling), 0},
                 {static_cast<std::uint32_t>(model_.seed), static_cast<std::uint32_t>(model_.seed >> 32)});
  ++seeds_drawn_;
  return (std::uint64_t{drawn[0]} << 32) | drawn[1];
}

ApiResult<PromptBuilder::Built> PromptBuilder::build(const GenerationRequest& request, const std::string& request_id) {
  auto all = all_tokens(request);
  if (!all) return std::unexpected(std::move(all).error());
  Built built;
  for (std::vector<TokenId>& tokens : *all) {
    if (auto status = check_tokens(tokens); !status) return std::unexpected(std::move(status).error());
    auto limit = max_tokens(request, tokens.size());
    if (!limit) return std::unexpected(std::move(limit).error());
    if (request.echo) {
      const auto* text = std::get_if<std::string>(&request.prompts[built.requests.size()]);
      built.echoes.push_back(text != nullptr ? *text : model_.tokenizer->decode(tokens));
    }
    runtime::EngineRequest& next = built.requests.emplace_back();
    next.request_id = fmt::format("{}-{}", request_id, built.requests.size() - 1);
    next.prompt = std::move(tokens);
    next.sampling = request.sampling;
    next.sampling.max_tokens = *limit;
    next.sampling.min_tokens = std::min(next.sampling.min_tokens, *limit);
    next.sampling.seed = request.seed ? *request.seed : next_seed();
    next.cache_salt = salt_of(request.cache_salt);
  }
  return built;
}

}  // namespace tokenstone::server
