#include "token/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "token/utf8.h"

namespace tokenstone::token {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

std::string unicode_form(std::string text, Normalizer::Kind kind) {
  if (is_ascii(text)) return text;  // ASCII is the same in all four forms
  int options = UTF8PROC_STABLE;
  options |= kind == Normalizer::Kind::nfc || kind == Normalizer::Kind::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (kind == Normalizer::Kind::nfkc || kind == Normalizer::Kind::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  // Valid UTF-8 can only fail for want of memory; the text as it stands is the best that is left then.
  if (length < 0) return text;
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(length)};
}

std::string apply_step(const Normalizer::Step& step, std::string text, bool is_first) {
  using Kind = Normalizer::Kind;
  switch (step.kind) {
    case Kind::nfc:
    case Kind::nfd:
    case Kind::nfkc:
    case Kind::nfkd:
      return unicode_form(std::move(text), step.kind);
    case Kind::prepend:
      return text.empty() ? text : step.to + text;
    case Kind::prepend_missing:
      return text.empty() || text.starts_with(step.to) ? text : step.to + text;
    case Kind::prepend_first:
      return text.empty() || !is_first || text.starts_with(step.to) ? text : step.to + text;
    case Kind::replace:
      return replace_all(text, step.from, step.to);
  }
  return text;
}

}  // namespace

std::string Normalizer::apply(std::string_view text, bool is_first) const {
  std::string result(text);
  for (const Step& step : steps_) result = apply_step(step, std::move(result), is_first);
  return result;
}

}  // namespace tokenstone::token
