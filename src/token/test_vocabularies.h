// Small vocabularies for tests, written in each file format.
//
// Pure functions; texts are bytes of files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "modelfile/test_files.h"
#include "token/byte_alphabet.h"

namespace tokenstone::testing {

inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

using MergeList = std::vector<std::pair<std::string, std::string>>;

/// A byte-level tokenizer.json: the 256 bytes, the results of `merges`, and "<|end|>" as special token. Texts are raw
/// bytes.
struct ByteLevelJson {
  MergeList merges = {{"l", "o"}, {"lo", "w"}, {" ", "low"}, {"e", "r"}};
  std::vector<std::string> words;  ///< tokens that no merge makes
  bool merges_as_lists = false;
  std::string model_options;  ///< e.g. R"("ignore_merges":true,)"
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  std::string post_processor = "null";

  std::string bytes() const {
    std::vector<std::string> tokens;
    for (unsigned byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const auto& [left, right] : merges) tokens.push_back(left + right);
    tokens.insert(tokens.end(), words.begin(), words.end());
    std::string vocabulary, list;
    for (std::size_t id = 0; id < tokens.size(); ++id)
      vocabulary += (id > 0 ? "," : "") + json_text(token::bytes_to_alphabet(tokens[id])) + ":" + std::to_string(id);
    for (const auto& [left, right] : merges) {
      const std::string a = token::bytes_to_alphabet(left), b = token::bytes_to_alphabet(right);
      list += (list.empty() ? "" : ",") +
              (merges_as_lists ? "[" + json_text(a) + "," + json_text(b) + "]" : json_text(a + " " + b));
    }
    return R"({"added_tokens":[{"id":)" + std::to_string(tokens.size()) +
           R"(,"content":"<|end|>","special":true}],"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" +
           pre_tokenizer + R"(,"post_processor":)" + post_processor +
           R"(,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE",)" + model_options + R"("vocab":{)" + vocabulary +
           R"(},"merges":[)" + list + "]}}";
  }
};

struct ScoredPiece {
  std::string text;
  float score = 0;
  std::uint32_t kind = 1;
};

/// <unk>, <s>, </s>, the 256 byte pieces, then `words` with scores that fall from -1.
inline std::vector<ScoredPiece> scored_pieces(const std::vector<std::string>& words) {
  std::vector<ScoredPiece> pieces = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte)
    pieces.push_back({std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, 6});
  float score = 0;
  for (const std::string& word : words) pieces.push_back({word, score -= 1, 1});
  return pieces;
}

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

inline std::string message_field(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string number_field(std::uint32_t number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}

/// A SentencePiece model; `model_type` 2 is BPE.
inline std::string sentencepiece_bytes(const std::vector<ScoredPiece>& pieces, std::uint64_t model_type = 2,
                                       bool remove_extra_blanks = false) {
  std::string out;
  for (const ScoredPiece& piece : pieces) {
    std::string message = message_field(1, piece.text) + varint(2 << 3 | 5) + raw(piece.score);
    if (piece.kind != 1) message += number_field(3, piece.kind);
    out += message_field(1, message);
  }
  out += message_field(2, number_field(3, model_type) + number_field(35, 1) + number_field(43, ~0ull));
  return out + message_field(
                   3, message_field(1, "identity") + number_field(3, 1) + number_field(4, remove_extra_blanks ? 1 : 0));
}

inline GgufWriter sentencepiece_gguf(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;
  for (const ScoredPiece& piece : pieces) {
    texts.push_back(piece.text);
    scores.push_back(piece.score);
    kinds.push_back(static_cast<std::int32_t>(piece.kind));
  }
  GgufWriter writer;
  writer.pair_text("general.architecture", "llama")
      .pair_text("tokenizer.ggml.model", "llama")
      .pair_texts("tokenizer.ggml.tokens", texts);
  writer.pair_numbers("tokenizer.ggml.scores", 6, scores).pair_numbers("tokenizer.ggml.token_type", 5, kinds);
  return writer.pair_u32("tokenizer.ggml.bos_token_id", 1).pair_u32("tokenizer.ggml.eos_token_id", 2);
}

}  // namespace tokenstone::testing
