// A tokenizer out of GGUF metadata: `tokenizer.ggml.model` "llama" is SentencePiece BPE by scores, "gpt2" byte-level
// BPE by merges, where `tokenizer.ggml.pre` names the cut into words.
#include <fmt/format.h>

#include "base/text.h"
#include "modelfile/mapped_file.h"
#include "modelfile/model.h"
#include "token/byte_alphabet.h"
#include "token/loaders.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

using modelfile::MetaValue;

struct NamedCut {
  std::string_view name;
  std::vector<PreTokenizer::Step> steps;
  bool ignore_merges = false;
  bool add_bos = false;
};

/// The cuts that llama.cpp's converter names, for the models that this engine can run or has vectors for.
const std::vector<NamedCut>& named_cuts() {
  const std::string digits_apart = R"(\p{N})";
  const auto words_with_numbers_of = [](std::string_view digits) {
    return fmt::format(
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        digits);
  };
  static const std::vector<NamedCut> cuts = {
      {"default", {{R"([\p{P}\$\+<=>\^~\|]+)"}, {kGpt2Pattern}, {R"(\p{N}+)"}, {"[0-9][0-9][0-9]"}}},
      {"gpt-2", {{kGpt2Pattern}}},
      {"llama-bpe", {{words_with_numbers_of(R"(\p{N}{1,3})")}}, true, true},
      {"qwen2", {{words_with_numbers_of(R"(\p{N})")}}},
      {"starcoder", {{digits_apart}, {kGpt2Pattern}}},
      {"refact", {{digits_apart}, {kGpt2Pattern}}},
      {"smollm", {{digits_apart}, {kGpt2Pattern}}},
      {"deepseek-coder",
       {{"[\r\n]"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {R"([一-龥ࠀ-一가-퟿]+)"}, {digits_apart}}},
  };
  return cuts;
}

class GgufTokenizer {
 public:
  explicit GgufTokenizer(const modelfile::ModelFile& model) : model_(model) {}

  Result<BpeSpec> read() {
    const std::string kind = text("model");
    TS_TRY_STATUS(read_vocabulary(kind));
    if (kind == "llama") {
      TS_TRY_STATUS(read_sentencepiece());
    } else if (kind == "gpt2") {
      TS_TRY_STATUS(read_byte_level());
    } else {
      return wrong(fmt::format(
          "expected the tokenizer model \"llama\" or \"gpt2\", found {}; give another tokenizer with --tokenizer",
          modelfile::in_quotes(kind)));
    }
    read_specials(kind == "llama");
    spec_.name = fmt::format("{} ({})", kind == "llama" ? "SentencePiece BPE" : "byte-level BPE",
                             std::filesystem::path(model_.path).filename().string());
    return std::move(spec_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return usage_error(fmt::format("{}: {}", model_.path, what));
  }

  template <class T>
  const T* find(const std::string& key) const {
    const auto found = model_.metadata.find("tokenizer.ggml." + key);
    return found == model_.metadata.end() ? nullptr : std::get_if<T>(&found->second);
  }
  std::string text(const std::string& key) const {
    const auto* value = find<std::string>(key);
    return value != nullptr ? *value : std::string();
  }
  bool flag(const std::string& key, bool otherwise) const {
    const auto* value = find<bool>(key);
    return value != nullptr ? *value : otherwise;
  }
  TokenId token(const std::string& key) const {
    const auto* value = find<std::uint64_t>(key);
    const auto* with_sign = find<std::int64_t>(key);
    const std::int64_t id = value != nullptr       ? static_cast<std::int64_t>(*value)
                            : with_sign != nullptr ? *with_sign
                                                   : -1;
    return id >= 0 && id < static_cast<std::int64_t>(spec_.vocabulary.size()) ? static_cast<TokenId>(id) : kNoToken;
  }

  Status read_vocabulary(const std::string& kind) {
    if (kind.empty())
      return wrong("the file has no tokenizer (tokenizer.ggml.model is missing); give one with --tokenizer");
    const auto* tokens = find<std::vector<std::string>>("tokens");
    if (tokens == nullptr || tokens->empty())
      return wrong("tokenizer.ggml.tokens must be a list of texts; convert the model again");
    const auto* kinds = find<std::vector<std::int64_t>>("token_type");
    const bool stated = model_.metadata.contains("tokenizer.ggml.token_type");
    if (stated && (kinds == nullptr || kinds->size() != tokens->size()))
      return wrong("tokenizer.ggml.token_type must hold one whole number per token; convert the model again");
    const bool byte_level = kind == "gpt2";
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      const bool normal = kinds == nullptr || (*kinds)[i] == 1;
      const auto bytes = byte_level && normal ? alphabet_to_bytes((*tokens)[i]) : std::nullopt;
      pieces.push_back(bytes.value_or(to_valid_utf8((*tokens)[i])));
    }
    spec_.vocabulary = Vocabulary(std::move(pieces));
    for (std::size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
      const std::int64_t number = (*kinds)[i];
      if (number < 0 || number > 6)
        return wrong(fmt::format("token {} has the unknown type {}; convert the model again", i, number));
      if (number != 0) spec_.vocabulary.set_kind(static_cast<TokenId>(i), static_cast<PieceKind>(number));
    }
    return {};
  }

  Status read_sentencepiece() {
    const auto* scores = find<std::vector<double>>("scores");
    if (scores == nullptr || scores->size() != spec_.vocabulary.size())
      return wrong("tokenizer.ggml.scores must hold one floating-point number per token; convert the model again");
    merges_from_scores(*scores, spec_);
    add_sentencepiece_blanks(flag("add_space_prefix", true), spec_);
    spec_.byte_fallback = true;
    spec_.fuse_unknown = true;
    add_bos_ = true;
    return {};
  }

  Status read_byte_level() {
    spec_.byte_level = true;
    const auto* merges = find<std::vector<std::string>>("merges");
    if (merges == nullptr || merges->empty())
      return wrong("the byte-level tokenizer has no merges (tokenizer.ggml.merges); convert the model again");
    TS_TRY_STATUS(read_merges(*merges));
    const std::string stated = text("pre");
    const std::string name = stated.empty() ? "default" : stated;
    const auto cut = std::ranges::find(named_cuts(), name, &NamedCut::name);
    if (cut == named_cuts().end()) return unknown_cut(name);
    TS_TRY(spec_.pre_tokenizer, PreTokenizer::compile(cut->steps));
    spec_.ignore_merges = cut->ignore_merges;
    add_bos_ = cut->add_bos;
    return {};
  }

  std::unexpected<Error> unknown_cut(std::string_view name) const {
    std::vector<std::string> names;
    for (const NamedCut& cut : named_cuts()) names.emplace_back(cut.name);
    return wrong(fmt::format(
        "the pre-tokenizer {} (tokenizer.ggml.pre) is not supported, known are {}; give the model's tokenizer.json "
        "with --tokenizer",
        modelfile::in_quotes(name), join(names, ", ")));
  }

  Status read_merges(const std::vector<std::string>& merges) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::size_t blank = merges[rank].find(' ', 1);
      const std::string_view merge = merges[rank];
      const auto left = blank == std::string::npos ? std::nullopt : alphabet_to_bytes(merge.substr(0, blank));
      const auto right = blank == std::string::npos ? std::nullopt : alphabet_to_bytes(merge.substr(blank + 1));
      const Vocabulary& vocabulary = spec_.vocabulary;
      const TokenId a = left ? vocabulary.find(*left) : kNoToken, b = right ? vocabulary.find(*right) : kNoToken;
      const TokenId result = left && right ? vocabulary.find(*left + *right) : kNoToken;
      if (a == kNoToken || b == kNoToken || result == kNoToken)
        return wrong(fmt::format("merge {} ({}) does not join two tokens into a third; convert the model again", rank,
                                 modelfile::in_quotes(merge)));
      spec_.merges.push_back({a, b, result, static_cast<std::uint32_t>(rank)});
    }
    return {};
  }

  void read_specials(bool is_sentencepiece) {
    add_tokens_by_kind(spec_);
    spec_.unknown = token("unknown_token_id");
    if (is_sentencepiece && spec_.unknown == kNoToken) spec_.unknown = spec_.vocabulary.find("<unk>");
    spec_.bos = token("bos_token_id");
    for (const char* key : {"eos_token_id", "eot_token_id"}) add_eos(token(key));
    // Chat models end a turn with a token of their own, which older files do not name.
    for (const char* name : {"<|eot_id|>", "<|im_end|>", "<end_of_turn>"}) {
      const TokenId id = spec_.vocabulary.find(name);
      if (id != kNoToken && spec_.vocabulary.kind(id) == PieceKind::control) add_eos(id);
    }
    if (spec_.bos != kNoToken && flag("add_bos_token", add_bos_)) spec_.before.push_back(spec_.bos);
    if (!spec_.eos.empty() && flag("add_eos_token", false)) spec_.after.push_back(spec_.eos.front());
    const auto found = model_.metadata.find("tokenizer.chat_template");
    if (found != model_.metadata.end())
      if (const auto* source = std::get_if<std::string>(&found->second)) spec_.chat_template = *source;
  }

  void add_eos(TokenId id) {
    if (id != kNoToken && std::ranges::find(spec_.eos, id) == spec_.eos.end()) spec_.eos.push_back(id);
  }

  const modelfile::ModelFile& model_;
  BpeSpec spec_;
  bool add_bos_ = false;
};

}  // namespace

Result<BpeSpec> spec_from_gguf(const modelfile::ModelFile& model) { return GgufTokenizer(model).read(); }

}  // namespace tokenstone::token
