// Tokens that are found in the text as they are written, before any merging: specials and user-defined ones.
//
// Threads: immutable after construction. Offsets are bytes. The leftmost match wins, of those the longest. Nothing can
// fail.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tokenstone::token {

struct AddedToken {
  std::string content;
  TokenId id = kNoToken;
  bool special = false;     ///< found only when the caller wants special tokens parsed
  bool strip_left = false;  ///< takes the blanks before it along
  bool strip_right = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin, end;
    TokenId id;
  };
  /// The first match at or after `from`.
  std::optional<Match> next(std::string_view text, std::size_t from, bool parse_special) const;

 private:
  std::optional<Match> at(std::string_view text, std::size_t position, std::size_t from, bool parse_special) const;

  std::vector<AddedToken> tokens_;                                    ///< by first byte, then longest first
  std::array<std::pair<std::uint32_t, std::uint32_t>, 256> range_{};  ///< of tokens_, by first byte
};

}  // namespace tokenstone::token
