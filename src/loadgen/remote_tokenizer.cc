#include "loadgen/remote_tokenizer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "loadgen/http_fetch.h"

namespace tokenstone::loadgen {
namespace {

using nlohmann::json;

constexpr TimeNs kTimeout = 30 * kSecond;
/// Words whose ids show which part of the vocabulary ordinary text uses.
constexpr std::string_view kProbe =
    "The quick brown fox jumps over the lazy dog while seven wizards quietly mix a large jug of liquid quartz. In 1998 "
    "they measured 42 percent, "
    "then wrote: \"results, like rivers, follow their beds\" - and nobody argued (for once).";

class RemoteTokenizer final : public token::Tokenizer {
 public:
  RemoteTokenizer(RemoteTokenizerOptions options, std::size_t vocab_size)
      : options_(std::move(options)), vocab_size_(vocab_size) {}

  std::vector<TokenId> encode(std::string_view text, const token::EncodeOptions& encode) const override {
    return tokenize(options_, text, encode.add_special).value_or(std::vector<TokenId>{});
  }
  std::string token_bytes(TokenId id, bool) const override { return decode({&id, 1}, true); }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    json body = {{"tokens", std::vector<TokenId>(ids.begin(), ids.end())}};
    if (!options_.model.empty()) body["model"] = options_.model;
    const auto reply = http_post(options_.url, "/detokenize", options_.headers, body.dump(), kTimeout);
    if (!reply || !reply->ok()) return {};
    const json answer = json::parse(reply->body, nullptr, false);
    return answer.is_object() && answer.contains("prompt") && answer["prompt"].is_string()
               ? answer["prompt"].get<std::string>()
               : std::string{};
  }
  std::size_t vocab_size() const override { return vocab_size_; }
  bool is_special(TokenId) const override { return false; }
  TokenId bos() const override { return kNoToken; }
  std::vector<TokenId> eos() const override { return {}; }
  bool strips_leading_space() const override { return false; }
  std::string name() const override { return "the server's /tokenize"; }
  std::string chat_template() const override { return {}; }

  static std::optional<std::vector<TokenId>> tokenize(const RemoteTokenizerOptions& options, std::string_view text,
                                                      bool add_special) {
    json body = {{"prompt", text}, {"add_special_tokens", add_special}};
    if (!options.model.empty()) body["model"] = options.model;
    const auto reply = http_post(options.url, "/tokenize", options.headers,
                                 body.dump(-1, ' ', false, json::error_handler_t::replace), kTimeout);
    if (!reply || !reply->ok()) return std::nullopt;
    const json answer = json::parse(reply->body, nullptr, false);
    if (!answer.is_object() || !answer.contains("tokens") || !answer["tokens"].is_array()) return std::nullopt;
    std::vector<TokenId> ids;
    for (const json& id : answer["tokens"]) {
      if (!id.is_number_integer()) return std::nullopt;
      ids.push_back(id.get<TokenId>());
    }
    return ids;
  }

 private:
  RemoteTokenizerOptions options_;
  std::size_t vocab_size_;
};

}  // namespace

Result<token::TokenizerPtr> connect_remote_tokenizer(RemoteTokenizerOptions options) {
  const auto ids = RemoteTokenizer::tokenize(options, kProbe, false);
  if (!ids || ids->empty()) return fail(ErrorKind::not_found, "the server has no /tokenize in vLLM's form");
  // The vocabulary's size is not served: ids up to the largest one of ordinary text certainly exist.
  const TokenId largest = *std::max_element(ids->begin(), ids->end());
  auto tokenizer = std::make_shared<RemoteTokenizer>(std::move(options), static_cast<std::size_t>(largest) + 1);
  if (tokenizer->decode(*ids, true).empty())
    return fail(ErrorKind::not_found, "the server has no /detokenize in vLLM's form");
  return tokenizer;
}

}  // namespace tokenstone::loadgen
