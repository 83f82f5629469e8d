// The readers of the tokenizer formats, each giving a BpeSpec, and what they share; nothing outside this module
// includes it.
//
// Ownership, threads: values. Failure: as tokenizer.h; messages name the file.
#pragma once

#include <filesystem>

#include "token/bpe_tokenizer.h"

namespace tokenstone::token {

Result<BpeSpec> spec_from_tokenizer_json(const std::filesystem::path& path);
Result<BpeSpec> spec_from_sentencepiece(const std::filesystem::path& path);
Result<BpeSpec> spec_from_gguf(const modelfile::ModelFile& model);

/// Merges of a SentencePiece vocabulary: a pair may be merged when its text is a piece; the higher the piece's score
/// the sooner. Fills `merges` and `extra_symbols`.
void merges_from_scores(std::span<const double> scores, BpeSpec& spec);
/// What a SentencePiece tokenizer does to blanks: each becomes U+2581, and one is put before the text.
void add_sentencepiece_blanks(bool add_prefix, BpeSpec& spec);
/// Control, unknown and user-defined pieces are found in the text as they are written.
void add_tokens_by_kind(BpeSpec& spec);

/// tokenizer_config.json beside a tokenizer: texts of the special tokens and the chat template; empty when not stated.
struct TokenizerConfig {
  std::string bos_token, eos_token, chat_template;
  std::optional<bool> add_bos_token;
};
/// A file that is not there gives an empty configuration.
Result<TokenizerConfig> load_tokenizer_config(const std::filesystem::path& folder);

}  // namespace tokenstone::token
