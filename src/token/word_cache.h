// Words that were merged lately, and their tokens: most of a text is a few thousand words over and over.
//
// Ownership: one fixed table per thread, shared by all tokenizers (each knows its entries by an owner's number, never
// used twice). Threads: each has its own. Nothing can fail; a word or a result that is too long is not kept.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone::token {

class WordCache {
 public:
  using Owner = std::uint64_t;
  static Owner new_owner();
  /// Appends the word's tokens, if they are known.
  static bool find(Owner owner, std::string_view word, std::vector<TokenId>& ids);
  static void keep(Owner owner, std::string_view word, std::span<const TokenId> ids);
};

}  // namespace tokenstone::token
