// A tokenizer for tests: single bytes and a list of words, longest match first, optionally with a begin-of-text token.
//
// Ownership: owns its vocabulary. Threads: any. Units: tokens. Failure: none.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "token/tokenizer.h"

namespace tokenstone::workload::testing {

class GreedyTokenizer : public token::Tokenizer {
 public:
  explicit GreedyTokenizer(const std::vector<std::string>& words, bool adds_bos = false) : adds_bos_(adds_bos) {
    pieces_.emplace_back();  // 0: <s>
    for (int byte = 0; byte < 256; ++byte) pieces_.emplace_back(1, static_cast<char>(byte));
    pieces_.insert(pieces_.end(), words.begin(), words.end());
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
      ids_[pieces_[i]] = static_cast<TokenId>(i);
      longest_ = std::max(longest_, pieces_[i].size());
    }
  }

  std::vector<TokenId> encode(std::string_view text, const token::EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    if (options.add_special && adds_bos_) ids.push_back(0);
    while (!text.empty()) {
      std::size_t length = std::min(longest_, text.size());
      auto found = ids_.find(std::string(text.substr(0, length)));
      while (found == ids_.end()) found = ids_.find(std::string(text.substr(0, --length)));
      ids.push_back(found->second);
      text.remove_prefix(length);
    }
    return ids;
  }
  std::string token_bytes(TokenId id, bool) const override {
    return id >= 0 && static_cast<std::size_t>(id) < pieces_.size() ? pieces_[static_cast<std::size_t>(id)] : "";
  }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, false);
    return text;
  }
  std::size_t vocab_size() const override { return pieces_.size(); }
  bool is_special(TokenId id) const override { return id == 0; }
  TokenId bos() const override { return adds_bos_ ? 0 : kNoToken; }
  std::vector<TokenId> eos() const override { return {}; }
  bool strips_leading_space() const override { return false; }
  std::string name() const override { return "greedy"; }
  std::string chat_template() const override { return ""; }

 private:
  bool adds_bos_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, TokenId> ids_;
  std::size_t longest_ = 1;
};

/// " aa", " ab" ... " zz": decoding and encoding again changes nothing.
inline token::TokenizerPtr word_tokenizer(bool adds_bos = false) {
  std::vector<std::string> words;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) words.push_back({' ', a, b});
  return std::make_shared<GreedyTokenizer>(words, adds_bos);
}

/// "aa" ... "zz" without blanks: single letters that meet become one token, so most first texts come out too short.
inline token::TokenizerPtr merging_tokenizer(bool adds_bos = false) {
  std::vector<std::string> words;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) words.push_back({a, b});
  return std::make_shared<GreedyTokenizer>(words, adds_bos);
}

}  // namespace tokenstone::workload::testing
