// What happens to a text before it is cut into words: Unicode composition, a prefix, replacements, one after the other.
//
// Threads: immutable after construction. Texts are valid UTF-8 on both sides. Nothing can fail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokenstone::token {

class Normalizer {
 public:
  enum class Kind {
    nfc,
    nfd,
    nfkc,
    nfkd,
    prepend,          ///< `to` before every text that is not empty
    prepend_missing,  ///< the same, unless the text begins with it
    prepend_first,    ///< the same, for the first text only
    replace,          ///< every `from` by `to`
  };
  struct Step {
    Kind kind;
    std::string from, to;
  };

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }
  /// `is_first`: nothing stands before `text` in the whole input.
  std::string apply(std::string_view text, bool is_first) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace tokenstone::token
