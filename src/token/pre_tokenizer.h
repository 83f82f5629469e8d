// Cuts a text into the words inside which merging takes place, by the regular expressions that the tokenizer's file
// names.
//
// Ownership: holds the compiled expressions. Threads: split may be called from any thread. Offsets are bytes.
// Failure: a pattern that does not compile gives an Error; a match that runs into a limit ends the cutting there (the
// rest is one piece), so that encoding always ends.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tokenstone::token {

class PreTokenizer {
 public:
  enum class Keep {
    all,      ///< matches and what lies between them are pieces of their own
    matches,  ///< what lies between matches is dropped
  };
  struct Step {
    std::string pattern;
    Keep keep = Keep::all;
  };

  PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// Each step cuts the pieces of the one before it. No steps: the text is one piece.
  static Result<PreTokenizer> compile(const std::vector<Step>& steps);
  /// Appends the pieces of `text`, which is valid UTF-8, to `pieces`; none is empty.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Compiled;
  std::vector<Compiled> steps_;
};

/// A literal text as a pattern.
std::string escape_pattern(std::string_view literal);
/// The cut that GPT-2 makes, which the pre-tokenizer "ByteLevel" stands for.
extern const char* const kGpt2Pattern;

}  // namespace tokenstone::token
