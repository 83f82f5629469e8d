// Pieces by number and numbers by piece.
//
// Ownership: movable, not copyable (the index points into the pieces). Threads: immutable once filled.
// Failure: none; of two equal pieces the first one is found by text.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace tokenstone::token {

/// The numbers are those of SentencePiece and GGUF.
enum class PieceKind : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class Vocabulary {
 public:
  Vocabulary() = default;
  /// The pieces as the merging sees them: raw bytes (byte-level), or text with U+2581 for blanks.
  explicit Vocabulary(std::vector<std::string> pieces)
      : pieces_(std::move(pieces)), kinds_(pieces_.size(), PieceKind::normal) {
    index_.reserve(pieces_.size());
    for (std::size_t id = 0; id < pieces_.size(); ++id)
      if (!pieces_[id].empty()) index_.emplace(pieces_[id], static_cast<TokenId>(id));
  }
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  std::size_t size() const { return pieces_.size(); }
  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < pieces_.size(); }
  const std::string& piece(TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  PieceKind kind(TokenId id) const { return kinds_[static_cast<std::size_t>(id)]; }
  void set_kind(TokenId id, PieceKind kind) { kinds_[static_cast<std::size_t>(id)] = kind; }
  /// kNoToken when there is none.
  TokenId find(std::string_view piece) const {
    const auto found = index_.find(piece);
    return found == index_.end() ? kNoToken : found->second;
  }

 private:
  std::vector<std::string> pieces_;
  std::vector<PieceKind> kinds_;
  std::unordered_map<std::string_view, TokenId> index_;
};

}  // namespace tokenstone::token
