// The one BPE tokenizer behind all file formats; what differs between them stands in the BpeSpec that each loader
// fills.
//
// The way of a text: added tokens are cut out; each rest is normalised, cut into words, and each word becomes symbols
// (bytes, or characters) that are merged. Example (byte-level): "low lower" -> "low", " lower" -> l o w -> low.
// Ownership, threads, failure: as tokenizer.h.
#pragma once

#include <array>

#include "token/added_tokens.h"
#include "token/merger.h"
#include "token/normalizer.h"
#include "token/pre_tokenizer.h"
#include "token/tokenizer.h"
#include "token/vocabulary.h"
#include "token/word_cache.h"

namespace tokenstone::token {

struct BpeSpec {
  std::string name;
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  /// Characters that are no tokens but parts of tokens; symbol = vocabulary size + index.
  std::vector<std::string> extra_symbols;
  bool byte_level = false;     ///< symbols are bytes; else characters
  bool ignore_merges = false;  ///< a word that is a token is taken whole
  bool byte_fallback = false;  ///< unknown characters become byte tokens
  bool fuse_unknown = false;   ///< unknown characters side by side become one unknown token
  TokenId unknown = kNoToken;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::vector<TokenId> before, after;  ///< what add_special puts around the text
  TokenId bos = kNoToken;
  std::vector<TokenId> eos;
  std::string chat_template;
  bool strips_leading_space = false;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeSpec spec);

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string token_bytes(TokenId id, bool keep_special) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::size_t vocab_size() const override { return spec_.vocabulary.size(); }
  bool is_special(TokenId id) const override;
  TokenId bos() const override { return spec_.bos; }
  std::vector<TokenId> eos() const override { return spec_.eos; }
  bool strips_leading_space() const override { return spec_.strips_leading_space; }
  std::string name() const override { return spec_.name; }
  std::string chat_template() const override { return spec_.chat_template; }

 private:
  void index_symbols();
  void make_outputs();
  void find_safe_cuts();
  void encode_text(std::string_view text, bool is_first, std::vector<TokenId>& ids) const;
  void encode_words(std::string_view text, std::vector<TokenId>& ids) const;
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const;
  void to_symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  void push_unknown(std::string_view character, std::vector<TokenId>& ids) const;

  BpeSpec spec_;
  const WordCache::Owner cache_owner_ = WordCache::new_owner();
  Merger merger_;
  AddedTokens added_;
  std::array<TokenId, 256> byte_ids_{};                      ///< of a byte (byte-level), or of its "<0xNN>" token
  std::unordered_map<std::string_view, Symbol> characters_;  ///< not byte-level: a character's symbol
  std::vector<std::string> outputs_;                         ///< the bytes that a token adds to a text
  bool cuts_at_blanks_ =
      false;  ///< no token has a blank mark after another character, so words can be merged one by one
};

}  // namespace tokenstone::token
