#include "token/added_tokens.h"

#include <tuple>

namespace tokenstone::token {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

unsigned char first_byte(const AddedToken& token) { return static_cast<unsigned char>(token.content.front()); }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::ranges::stable_sort(tokens_, [](const AddedToken& a, const AddedToken& b) {
    return std::tuple(first_byte(a), b.content.size()) < std::tuple(first_byte(b), a.content.size());
  });
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    auto& [begin, end] = range_[first_byte(tokens_[i])];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

std::optional<AddedTokens::Match> AddedTokens::at(std::string_view text, std::size_t position, std::size_t from,
                                                  bool parse_special) const {
  const auto [begin, end] = range_[static_cast<unsigned char>(text[position])];
  for (std::uint32_t i = begin; i < end; ++i) {
    const AddedToken& token = tokens_[i];
    if ((token.special && !parse_special) || !text.substr(position).starts_with(token.content)) continue;
    Match match{position, position + token.content.size(), token.id};
    while (token.strip_left && match.begin > from && kBlanks.find(text[match.begin - 1]) != std::string_view::npos)
      --match.begin;
    while (token.strip_right && match.end < text.size() && kBlanks.find(text[match.end]) != std::string_view::npos)
      ++match.end;
    return match;
  }
  return std::nullopt;
}

std::optional<AddedTokens::Match> AddedTokens::next(std::string_view text, std::size_t from, bool parse_special) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t position = from; position < text.size(); ++position) {
    const auto [begin, end] = range_[static_cast<unsigned char>(text[position])];
    if (begin == end) continue;
    if (const auto match = at(text, position, from, parse_special)) return match;
  }
  return std::nullopt;
}

}  // namespace tokenstone::token
