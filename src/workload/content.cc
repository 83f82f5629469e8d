#include "workload/content.h"

#include <fmt/format.h>

#include "workload/builtin_text.h"

namespace tokenstone::workload {
namespace {

constexpr std::size_t kEnoughWords = 64;  // a smaller vocabulary makes prompts that are too alike
constexpr std::int64_t kBytesPerToken = 4;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(std::string_view bytes) {
  return bytes.size() > 2 && bytes.front() == ' ' && std::all_of(bytes.begin() + 1, bytes.end(), is_letter);
}
bool is_printable(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

struct Vocabulary {
  Content::Symbols all, printable, words;
};

Vocabulary vocabulary_of(const token::Tokenizer& tokenizer) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.is_special(id)) continue;
    const std::string bytes = tokenizer.token_bytes(id, false);
    if (bytes.empty()) continue;
    vocabulary.all.push_back(id);
    if (is_printable(bytes)) vocabulary.printable.push_back(id);
    if (is_word(bytes)) vocabulary.words.push_back(id);
  }
  return vocabulary;
}

Content::Symbols numbers_up_to(std::size_t count) {
  Content::Symbols numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<TokenId>(i);
  return numbers;
}

std::string words_of(const Content::Symbols& symbols) {
  std::string text;
  for (const TokenId symbol : symbols) {
    if (!text.empty()) text += ' ';
    text += plain_words()[static_cast<std::size_t>(symbol)];
  }
  return text;
}

}  // namespace

Content::Content(PromptForm form, token::TokenizerPtr tokenizer) : form_(form), tokenizer_(std::move(tokenizer)) {
  if (tokenizer_ == nullptr) {
    vocabulary_ = numbers_up_to(plain_words().size());
    return;
  }
  special_ = static_cast<std::int64_t>(tokenizer_->encode("", {.add_special = true, .parse_special = false}).size());
  Vocabulary vocabulary = vocabulary_of(*tokenizer_);
  const bool ids = form_ == PromptForm::token_ids;
  vocabulary_ = ids                                           ? std::move(vocabulary.all)
                : vocabulary.words.size() >= kEnoughWords     ? std::move(vocabulary.words)
                : vocabulary.printable.size() >= kEnoughWords ? std::move(vocabulary.printable)
                                                              : std::move(vocabulary.all);
}

Result<std::shared_ptr<const Content>> Content::make(PromptForm form, token::TokenizerPtr tokenizer) {
  if (form == PromptForm::token_ids && tokenizer == nullptr)
    return usage_error("prompts as token ids need a tokenizer: give --tokenizer, or send text", "--tokenizer");
  std::shared_ptr<const Content> content(new Content(form, std::move(tokenizer)));
  if (content->vocabulary_.empty())
    return usage_error("the tokenizer has no token that prompts could be made of; give another --tokenizer",
                       "--tokenizer");
  return content;
}

void Content::draw(Symbols& symbols, std::int64_t count, Rng& rng) const {
  const auto last = static_cast<std::int64_t>(vocabulary_.size()) - 1;
  symbols.reserve(symbols.size() + static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  for (std::int64_t i = 0; i < count; ++i)
    symbols.push_back(vocabulary_[static_cast<std::size_t>(rng.uniform_int(0, last))]);
}

std::int64_t Content::fill(record::RequestSpec& spec, Symbols symbols, Rng& rng) const {
  const auto asked = static_cast<std::int64_t>(symbols.size());
  spec.prompt_len = asked;
  spec.prompt_len_nominal = tokenizer_ == nullptr;
  if (form_ == PromptForm::token_ids) {
    spec.prompt = std::move(symbols);
  } else if (tokenizer_ == nullptr) {
    put_text(spec, words_of(symbols));
  } else {
    std::string text = fitted_text(std::move(symbols), asked, rng);
    spec.prompt_len = prompt_tokens(text);
    put_text(spec, std::move(text));
  }
  return spec.prompt_len - asked;
}

std::string Content::fitted_text(Symbols symbols, std::int64_t asked, Rng& rng) const {
  const auto target = static_cast<std::size_t>(std::max<std::int64_t>(1, asked - special_));
  symbols.resize(std::min(symbols.size(), target));
  std::string text = tokenizer_->decode(symbols, true);
  for (int round = 0; round < kFittingRounds; ++round) {
    symbols = tokenizer_->encode(text, {.add_special = false, .parse_special = false});
    if (symbols.size() == target) break;
    if (symbols.size() > target) symbols.resize(target);
    draw(symbols, static_cast<std::int64_t>(target - symbols.size()), rng);
    text = tokenizer_->decode(symbols, true);
  }
  return text;
}

void Content::fill_text(record::RequestSpec& spec, std::string text) const {
  spec.prompt_len = prompt_tokens(text);
  spec.prompt_len_nominal = tokenizer_ == nullptr;
  if (form_ == PromptForm::token_ids) {
    spec.prompt = tokenizer_->encode(text, {.add_special = true, .parse_special = false});
  } else {
    put_text(spec, std::move(text));
  }
}

void Content::fill_ids(record::RequestSpec& spec, Symbols ids) const {
  spec.prompt_len = static_cast<std::int64_t>(ids.size());
  spec.prompt_len_nominal = false;
  spec.prompt = std::move(ids);
}

void Content::put_text(record::RequestSpec& spec, std::string text) const {
  if (form_ == PromptForm::chat) {
    spec.prompt = std::vector<record::ChatMessage>{{"user", std::move(text)}};
  } else {
    spec.prompt = std::move(text);
  }
}

std::int64_t Content::prompt_tokens(std::string_view text) const {
  if (tokenizer_ == nullptr) return answer_tokens(text);
  return static_cast<std::int64_t>(tokenizer_->encode(text, {.add_special = true, .parse_special = false}).size());
}

std::int64_t Content::answer_tokens(std::string_view text) const {
  if (tokenizer_ == nullptr) return (static_cast<std::int64_t>(text.size()) + kBytesPerToken - 1) / kBytesPerToken;
  return static_cast<std::int64_t>(tokenizer_->encode(text, {.add_special = false, .parse_special = false}).size());
}

}  // namespace tokenstone::workload
