#include "token/bpe_tokenizer.h"

#include <fmt/format.h>

#include "base/text.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

/// An unknown character on its way through the merging, where nothing merges with it. Its text is found again by
/// position.
constexpr Symbol kUnknownSymbol = std::numeric_limits<Symbol>::max();

/// A blank mark that follows something else begins a word.
std::size_t next_cut(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(kBlankMark, from); at != std::string_view::npos;
       at = text.find(kBlankMark, at + kBlankMark.size()))
    if (at > 0 && !text.substr(0, at).ends_with(kBlankMark)) return at;
  return text.size();
}

}  // namespace

BpeTokenizer::BpeTokenizer(BpeSpec spec)
    : spec_(std::move(spec)), merger_(spec_.merges), added_(std::move(spec_.added)) {
  spec_.merges = {};
  index_symbols();
  make_outputs();
  if (!spec_.byte_level) find_safe_cuts();
}

void BpeTokenizer::index_symbols() {
  const Vocabulary& vocabulary = spec_.vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte)
    byte_ids_[byte] =
        vocabulary.find(spec_.byte_level ? std::string(1, static_cast<char>(byte)) : fmt::format("<0x{:02X}>", byte));
  if (spec_.byte_level) return;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& piece = vocabulary.piece(id);
    const bool merges = vocabulary.kind(id) == PieceKind::normal || vocabulary.kind(id) == PieceKind::unused;
    if (merges && !piece.empty() && char_length(piece, 0) == piece.size()) characters_.emplace(piece, id);
  }
  for (std::size_t i = 0; i < spec_.extra_symbols.size(); ++i)
    characters_.emplace(spec_.extra_symbols[i], static_cast<Symbol>(vocabulary.size() + i));
}

void BpeTokenizer::make_outputs() {
  outputs_.resize(spec_.vocabulary.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::string& piece = spec_.vocabulary.piece(static_cast<TokenId>(i));
    outputs_[i] = spec_.byte_level ? piece : replace_all(piece, kBlankMark, " ");
  }
  if (spec_.byte_level) return;
  for (unsigned byte = 0; byte < 256; ++byte)
    if (byte_ids_[byte] != kNoToken && spec_.vocabulary.kind(byte_ids_[byte]) == PieceKind::byte)
      outputs_[static_cast<std::size_t>(byte_ids_[byte])] = std::string(1, static_cast<char>(byte));
}

void BpeTokenizer::find_safe_cuts() {
  cuts_at_blanks_ = true;
  for (std::size_t i = 0; i < spec_.vocabulary.size(); ++i) {
    const std::string& piece = spec_.vocabulary.piece(static_cast<TokenId>(i));
    if (next_cut(piece, 0) != piece.size()) cuts_at_blanks_ = false;
  }
}

bool BpeTokenizer::is_special(TokenId id) const {
  if (!spec_.vocabulary.contains(id)) return false;
  const PieceKind kind = spec_.vocabulary.kind(id);
  return kind == PieceKind::control || kind == PieceKind::unknown;
}

std::string BpeTokenizer::token_bytes(TokenId id, bool keep_special) const {
  if (!spec_.vocabulary.contains(id) || (is_special(id) && !keep_special)) return {};
  return outputs_[static_cast<std::size_t>(id)];
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id, !skip_special);
  if (spec_.strips_leading_space && bytes.starts_with(' ')) bytes.erase(0, 1);
  return is_valid_utf8(bytes) ? bytes : to_valid_utf8(bytes);
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) text = repaired = to_valid_utf8(text);
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  if (options.add_special) ids = spec_.before;
  std::size_t done = 0;
  while (done < text.size()) {
    const auto match = added_.next(text, done, options.parse_special);
    const std::size_t end = match ? match->begin : text.size();
    if (end > done) encode_text(text.substr(done, end - done), done == 0, ids);
    if (!match) break;
    ids.push_back(match->id);
    done = match->end;
  }
  if (options.add_special) ids.insert(ids.end(), spec_.after.begin(), spec_.after.end());
  return ids;
}

void BpeTokenizer::encode_text(std::string_view text, bool is_first, std::vector<TokenId>& ids) const {
  std::string normalised;
  if (!spec_.normalizer.empty()) text = normalised = spec_.normalizer.apply(text, is_first);
  std::vector<std::string_view> pieces;
  spec_.pre_tokenizer.split(text, pieces);
  for (const std::string_view piece : pieces) {
    if (cuts_at_blanks_)
      encode_words(piece, ids);
    else
      encode_word(piece, ids);
  }
}

void BpeTokenizer::encode_words(std::string_view text, std::vector<TokenId>& ids) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = next_cut(text, begin + 1);
    encode_word(text.substr(begin, end - begin), ids);
    begin = end;
  }
}

void BpeTokenizer::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  if (spec_.ignore_merges) {
    const TokenId whole = spec_.vocabulary.find(word);
    if (whole != kNoToken && spec_.vocabulary.kind(whole) == PieceKind::normal) return ids.push_back(whole);
  }
  if (WordCache::find(cache_owner_, word, ids)) return;
  const std::size_t first = ids.size();
  thread_local std::vector<Symbol> symbols;
  symbols.clear();
  to_symbols(word, symbols);
  merger_.merge(symbols);
  const auto size = static_cast<Symbol>(spec_.vocabulary.size());
  std::size_t at = 0;  // where in the word the next symbol begins
  bool after_unknown = false;
  for (const Symbol symbol : symbols) {
    const bool known = symbol < size;
    if (known) {
      ids.push_back(symbol);
      at += spec_.vocabulary.piece(symbol).size();
    } else {
      const std::size_t length = spec_.byte_level ? 1 : char_length(word, at);
      const bool fused =
          after_unknown && spec_.fuse_unknown && !ids.empty() && ids.back() == spec_.unknown && ids.size() > first;
      if (!fused || spec_.byte_fallback) push_unknown(word.substr(at, length), ids);
      at += length;
    }
    after_unknown = !known;
  }
  WordCache::keep(cache_owner_, word, std::span(ids).subspan(first));
}

void BpeTokenizer::to_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  if (spec_.byte_level) {
    for (const char c : word) {
      const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
      symbols.push_back(id == kNoToken ? kUnknownSymbol : id);
    }
    return;
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = char_length(word, at);
    const auto found = characters_.find(word.substr(at, length));
    symbols.push_back(found == characters_.end() ? kUnknownSymbol : found->second);
    at += length;
  }
}

void BpeTokenizer::push_unknown(std::string_view character, std::vector<TokenId>& ids) const {
  const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  const bool has_bytes =
      spec_.byte_fallback && std::ranges::all_of(character, [&](char c) { return id_of(c) != kNoToken; });
  if (has_bytes) {
    for (const char c : character) ids.push_back(id_of(c));
  } else if (spec_.unknown != kNoToken) {
    ids.push_back(spec_.unknown);
  }
}

}  // namespace tokenstone::token
