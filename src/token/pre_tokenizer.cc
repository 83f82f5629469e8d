#include "token/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include "modelfile/mapped_file.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;

constexpr std::size_t kJitStackStart = 32 * 1024, kJitStackMost = 1024 * 1024;
constexpr std::uint32_t kMatchLimit = 1'000'000;

/// What a thread needs to match; made once per thread, since making it costs more than a match.
struct Scratch {
  std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr)};

  Scratch() {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Scratch& scratch() {
  thread_local Scratch mine;
  return mine;
}

// Unicode's White_Space. PCRE2's \s has U+180E as well, which the tokenizers' own engines do not; and \S is its
// complement.
constexpr std::string_view kBlanks =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNonBlanks =
    R"(\x{0}-\x{8}\x{E}-\x{1F}!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E})"
    R"(\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";

/// Writes \s and \S out, inside and outside of character classes.
std::string with_unicode_blanks(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      const bool blank = next == 's', non_blank = next == 'S';
      if (!blank && !non_blank)
        out += {c, next};
      else if (in_class)
        out += blank ? kBlanks : kNonBlanks;
      else
        out += fmt::format("[{}{}]", non_blank ? "^" : "", kBlanks);
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

struct Span {
  std::size_t begin, end;
};

std::optional<Span> find(const pcre2_code* code, bool jit, std::string_view text, std::size_t from) {
  Scratch& mine = scratch();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found =
      jit ? pcre2_jit_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, mine.data.get(), mine.context.get())
          : pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, mine.data.get(), mine.context.get());
  // The interpreter keeps its state on the heap and goes on where the compiled code's stack ends.
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, mine.data.get(),
                        mine.context.get());
  if (found < 0) return std::nullopt;
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(mine.data.get());
  // \K can move the beginning of a match behind its end; such a pattern cuts nothing.
  if (offsets[0] < from || offsets[1] < offsets[0]) return std::nullopt;
  return Span{offsets[0], offsets[1]};
}

}  // namespace

struct PreTokenizer::Compiled {
  Code code;
  bool jit = false;
  Keep keep = Keep::all;

  void split(std::string_view text, std::vector<std::string_view>& pieces) const {
    std::size_t done = 0;  // all before is cut
    std::size_t from = 0;  // where to look for the next match
    while (from < text.size()) {
      const auto match = find(code.get(), jit, text, from);
      if (!match) break;
      if (match->end == match->begin) {
        if (match->begin >= text.size()) break;
        from = match->begin + char_length(text, match->begin);
        continue;
      }
      if (match->begin > done && keep == Keep::all) pieces.push_back(text.substr(done, match->begin - done));
      pieces.push_back(text.substr(match->begin, match->end - match->begin));
      done = from = match->end;
    }
    if (done < text.size() && keep == Keep::all) pieces.push_back(text.substr(done));
  }
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::compile(const std::vector<Step>& steps) {
  PreTokenizer result;
  for (const Step& step : steps) {
    const std::string pattern = with_unicode_blanks(step.pattern);
    int error = 0;
    PCRE2_SIZE at = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                            &at, nullptr));
    if (code == nullptr) {
      char message[128] = {};
      pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
      return usage_error(fmt::format("the pre-tokenizer's pattern {} does not compile: {}",
                                     modelfile::in_quotes(step.pattern), message));
    }
    const bool jit = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
    result.steps_.push_back({std::move(code), jit, step.keep});
  }
  return result;
}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  if (text.empty()) return;
  if (steps_.empty()) return pieces.push_back(text);
  if (steps_.size() == 1) return steps_.front().split(text, pieces);
  std::vector<std::string_view> current{text}, next;
  for (const Compiled& step : steps_) {
    next.clear();
    for (const std::string_view piece : current) step.split(piece, next);
    std::swap(current, next);
  }
  pieces.insert(pieces.end(), current.begin(), current.end());
}

std::string escape_pattern(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<signed char>(c) < 0;
    if (!plain) out += '\\';
    out += c;
  }
  return out;
}

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace tokenstone::token
