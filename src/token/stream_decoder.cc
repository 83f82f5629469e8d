#include "token/tokenizer.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Moves what is decided from `bytes` to `text`: whole characters, and U+FFFD for bytes that can never become one.
void take_characters(std::string& bytes, std::string& text) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(done);
    const Utf8Head head = utf8_head(rest);
    if (head.kind == Utf8Head::unfinished) break;
    text += head.kind == Utf8Head::whole ? rest.substr(0, head.length) : kReplacement;
    done += head.length;
  }
  bytes.erase(0, done);
}

struct Match {
  std::size_t begin, end;
  const std::string* stop;
};

/// The stop string that ends first (of those the longest), so that the cuts between tokens cannot change the outcome.
std::optional<Match> find_stop(std::string_view text, const std::vector<std::string>& stops) {
  std::optional<Match> best;
  for (const std::string& stop : stops) {
    const std::size_t begin = text.find(stop);
    if (begin == std::string_view::npos) continue;
    const std::size_t end = begin + stop.size();
    if (!best || end < best->end || (end == best->end && begin < best->begin)) best = {begin, end, &stop};
  }
  return best;
}

/// Length of the longest end of `text` with which a stop string may begin.
std::size_t held_back(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t most = 0;
  for (const std::string& stop : stops) {
    for (std::size_t length = std::min(stop.size() - 1, text.size()); length > most; --length)
      if (text.ends_with(std::string_view(stop).substr(0, length))) most = length;
  }
  return most;
}

}  // namespace

StreamDecoder::StreamDecoder(TokenizerPtr tokenizer, std::vector<std::string> stop, bool include_stop,
                             bool skip_special, bool continues_prompt)
    : tokenizer_(std::move(tokenizer)),
      stop_(std::move(stop)),
      include_stop_(include_stop),
      skip_special_(skip_special),
      strip_blank_(!continues_prompt && tokenizer_->strips_leading_space()) {
  std::erase(stop_, std::string());  // an empty string would end every text before its first character
}

StreamDecoder::Piece StreamDecoder::push(TokenId id) {
  if (stopped_) return {"", true, ""};
  bytes_ += tokenizer_->token_bytes(id, !skip_special_);
  if (strip_blank_ && !bytes_.empty()) {
    if (bytes_.front() == ' ') bytes_.erase(0, 1);
    strip_blank_ = false;
  }
  take_characters(bytes_, pending_);
  Piece piece;
  if (const auto match = find_stop(pending_, stop_)) {
    stopped_ = true;
    piece = {pending_.substr(0, include_stop_ ? match->end : match->begin), true, *match->stop};
    pending_.clear();
    bytes_.clear();
    return piece;
  }
  const std::size_t free = pending_.size() - held_back(pending_, stop_);
  piece.text = pending_.substr(0, free);
  pending_.erase(0, free);
  return piece;
}

std::string StreamDecoder::finish() {
  std::string text = std::move(pending_);
  // What is left is the beginning of one character, cut off by the end.
  if (!bytes_.empty()) text += kReplacement;
  pending_.clear();
  bytes_.clear();
  return text;
}

}  // namespace tokenstone::token
