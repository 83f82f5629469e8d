// tokenizer.json of Hugging Face's tokenizers library: added tokens, a normaliser, a pre-tokeniser, a BPE model, a
// post-processor and a decoder, each an object with a "type". What is not supported is refused by its name.
#include <fmt/format.h>
#include <simdjson.h>

#include "modelfile/mapped_file.h"
#include "token/byte_alphabet.h"
#include "token/loaders.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// Numbers above the count of tokens by so much are taken for damage.
constexpr std::uint64_t kMostHoles = 65536;

std::string text_of(const object& json, std::string_view key) {
  std::string_view text;
  return json.at_key(key).get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

bool flag_of(const object& json, std::string_view key, bool otherwise = false) {
  bool value = otherwise;
  return json.at_key(key).get(value) == simdjson::SUCCESS ? value : otherwise;
}

std::optional<object> object_of(const object& json, std::string_view key) {
  object value;
  if (json.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<array> array_of(const object& json, std::string_view key) {
  array value;
  if (json.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

class TokenizerJson {
 public:
  explicit TokenizerJson(std::filesystem::path path) : path_(std::move(path)) {}

  Result<BpeSpec> read() {
    TS_TRY(const modelfile::MappedFile file, modelfile::MappedFile::open(path_));
    simdjson::dom::parser parser;
    object root;
    const auto error = parser.parse(file.text().data(), file.text().size()).get(root);
    if (error != simdjson::SUCCESS)
      return wrong(fmt::format("expected a JSON object, found {} ({}); fetch it again",
                               modelfile::describe_start(file.bytes()), simdjson::error_message(error)));
    const auto model = object_of(root, "model");
    if (!model)
      return wrong("there is no \"model\" in it: is it a tokenizer.json? A tokenizer_config.json alone is not enough");
    TS_TRY_STATUS(check_model(*model));
    find_byte_level(root);
    TS_TRY_STATUS(read_vocabulary(*model, root));
    TS_TRY_STATUS(read_merges(*model));
    if (const auto normalizer = object_of(root, "normalizer")) TS_TRY_STATUS(read_normalizer(*normalizer));
    if (const auto pre = object_of(root, "pre_tokenizer")) TS_TRY_STATUS(read_pre_tokenizer(*pre));
    TS_TRY(spec_.pre_tokenizer, PreTokenizer::compile(steps_));
    if (const auto post = object_of(root, "post_processor")) TS_TRY_STATUS(read_post_processor(*post));
    if (const auto decoder = object_of(root, "decoder")) read_decoder(*decoder);
    TS_TRY_STATUS(read_specials());
    spec_.name = fmt::format("{} ({})", spec_.byte_level ? "byte-level BPE" : "SentencePiece-style BPE",
                             path_.filename().string());
    return std::move(spec_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return usage_error(fmt::format("{}: {}", path_.string(), what));
  }
  std::unexpected<Error> unsupported(std::string_view part, std::string_view type) const {
    return wrong(
        fmt::format("the {} {} is not supported; use a model whose tokenizer is byte-level or SentencePiece-style BPE",
                    part, modelfile::in_quotes(type)));
  }

  Status check_model(const object& model) {
    const std::string type = text_of(model, "type");
    const bool has_merges = array_of(model, "merges").has_value();
    if (!type.empty() && type != "BPE") return unsupported("tokenizer model", type);
    if (type.empty() && !has_merges) return unsupported("tokenizer model", "without type and merges");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(model, key).empty()) return unsupported("model's option", key);
    double dropout = 0;
    if (model.at_key("dropout").get(dropout) == simdjson::SUCCESS && dropout > 0)
      return unsupported("model's option", "dropout");
    spec_.ignore_merges = flag_of(model, "ignore_merges");
    spec_.byte_fallback = flag_of(model, "byte_fallback");
    spec_.fuse_unknown = flag_of(model, "fuse_unk");
    return {};
  }

  /// Byte-level when the pre-tokeniser or the decoder says so, alone or in a sequence.
  void find_byte_level(const object& root) {
    for (const char* part : {"pre_tokenizer", "decoder"}) {
      const auto json = object_of(root, part);
      if (!json) continue;
      if (text_of(*json, "type") == "ByteLevel") spec_.byte_level = true;
      for (const char* key : {"pretokenizers", "decoders"}) {
        const auto list = array_of(*json, key);
        if (!list) continue;
        for (const element item : *list) {
          object step;
          if (item.get(step) == simdjson::SUCCESS && text_of(step, "type") == "ByteLevel") spec_.byte_level = true;
        }
      }
    }
  }

  std::string as_piece(std::string_view token) const {
    if (!spec_.byte_level) return std::string(token);
    return alphabet_to_bytes(token).value_or(std::string(token));
  }

  Status read_vocabulary(const object& model, const object& root) {
    const auto vocabulary = object_of(model, "vocab");
    if (!vocabulary || vocabulary->size() == 0) return wrong("the model has no vocabulary; fetch the file again");
    const auto added = array_of(root, "added_tokens");
    const std::uint64_t most = vocabulary->size() + (added ? added->size() : 0) + kMostHoles;
    std::vector<std::string> pieces;
    std::vector<bool> taken;
    const auto put = [&](std::uint64_t id, std::string piece) {
      if (id >= pieces.size()) pieces.resize(id + 1), taken.resize(id + 1);
      pieces[id] = std::move(piece);
      taken[id] = true;
    };
    for (const auto& [token, value] : *vocabulary) {
      std::uint64_t id = 0;
      if (value.get(id) != simdjson::SUCCESS || id >= most)
        return wrong(fmt::format("token {} has no usable number", modelfile::in_quotes(token)));
      if (id < taken.size() && taken[id]) return wrong(fmt::format("two tokens have the number {}", id));
      put(id, as_piece(token));
    }
    if (added) {
      for (const element item : *added) {
        TS_TRY(AddedToken token, read_added_token(item, most));
        put(static_cast<std::uint64_t>(token.id), token.content);
        spec_.added.push_back(std::move(token));
      }
    }
    spec_.vocabulary = Vocabulary(std::move(pieces));
    mark_kinds();
    const std::string unknown = text_of(model, "unk_token");
    if (!unknown.empty()) spec_.unknown = spec_.vocabulary.find(unknown);
    return {};
  }

  Result<AddedToken> read_added_token(const element& item, std::uint64_t most) const {
    object json;
    std::uint64_t id = 0;
    if (item.get(json) != simdjson::SUCCESS || json.at_key("id").get(id) != simdjson::SUCCESS || id >= most)
      return wrong("an added token has no usable number; fetch the file again");
    AddedToken token{text_of(json, "content"), static_cast<TokenId>(id), flag_of(json, "special"),
                     flag_of(json, "lstrip"), flag_of(json, "rstrip")};
    if (flag_of(json, "single_word")) return unsupported("added token's option", "single_word");
    return token;
  }

  void mark_kinds() {
    for (const AddedToken& token : spec_.added)
      spec_.vocabulary.set_kind(token.id, token.special ? PieceKind::control : PieceKind::user_defined);
    for (unsigned byte = 0; spec_.byte_fallback && byte < 256; ++byte) {
      const TokenId id = spec_.vocabulary.find(fmt::format("<0x{:02X}>", byte));
      if (id != kNoToken) spec_.vocabulary.set_kind(id, PieceKind::byte);
    }
  }

  Status read_merges(const object& model) {
    const auto merges = array_of(model, "merges");
    if (!merges || merges->size() == 0)
      return wrong("the BPE model has no merges, so no text can be encoded; fetch the complete file");
    std::uint32_t rank = 0;
    for (const element item : *merges) {
      const auto parts = merge_parts(item);
      if (!parts) return wrong(fmt::format("merge {} must be two tokens, as \"a b\" or [\"a\", \"b\"]", rank));
      const std::string left = as_piece(parts->first), right = as_piece(parts->second);
      const Vocabulary& vocabulary = spec_.vocabulary;
      const Merge merge{vocabulary.find(left), vocabulary.find(right), vocabulary.find(left + right), rank};
      if (merge.left == kNoToken || merge.right == kNoToken || merge.result == kNoToken)
        return wrong(fmt::format("merge {} ({} and {}) does not join two tokens into a third; fetch the file again",
                                 rank, modelfile::in_quotes(parts->first), modelfile::in_quotes(parts->second)));
      spec_.merges.push_back(merge);
      ++rank;
    }
    return {};
  }

  static std::optional<std::pair<std::string_view, std::string_view>> merge_parts(const element& item) {
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS) {
      const std::size_t blank = text.find(' ');
      if (blank == std::string_view::npos) return std::nullopt;
      return std::pair(text.substr(0, blank), text.substr(blank + 1));
    }
    array list;
    std::pair<std::string_view, std::string_view> parts;
    if (item.get(list) != simdjson::SUCCESS || list.size() != 2) return std::nullopt;
    if (list.at(0).get(parts.first) != simdjson::SUCCESS || list.at(1).get(parts.second) != simdjson::SUCCESS)
      return std::nullopt;
    return parts;
  }

  template <class Function>
  Status for_each_in(const object& json, std::string_view key, Function function) {
    const auto list = array_of(json, key);
    if (!list) return wrong(fmt::format("a Sequence has no list \"{}\"", key));
    for (const element item : *list) {
      object step;
      if (item.get(step) != simdjson::SUCCESS) return wrong(fmt::format("\"{}\" must hold objects", key));
      TS_TRY_STATUS(function(step));
    }
    return {};
  }

  Status read_normalizer(const object& json) {
    if (text_of(json, "type") == "Sequence")
      return for_each_in(json, "normalizers", [&](const object& step) { return read_normalizer_step(step); });
    return read_normalizer_step(json);
  }

  Status read_normalizer_step(const object& json) {
    using Kind = Normalizer::Kind;
    const std::string type = text_of(json, "type");
    static const std::map<std::string, Kind, std::less<>> forms = {
        {"NFC", Kind::nfc}, {"NFD", Kind::nfd}, {"NFKC", Kind::nfkc}, {"NFKD", Kind::nfkd}};
    if (const auto form = forms.find(type); form != forms.end()) {
      spec_.normalizer.add({form->second, "", ""});
    } else if (type == "Prepend") {
      spec_.normalizer.add({Kind::prepend, "", text_of(json, "prepend")});
    } else if (type == "Replace") {
      const auto pattern = object_of(json, "pattern");
      const std::string from = pattern ? text_of(*pattern, "String") : "";
      if (from.empty()) return unsupported("normaliser", "Replace with a regular expression");
      spec_.normalizer.add({Kind::replace, from, text_of(json, "content")});
    } else {
      return unsupported("normaliser", type);
    }
    return {};
  }

  Status read_pre_tokenizer(const object& json) {
    if (text_of(json, "type") == "Sequence")
      return for_each_in(json, "pretokenizers", [&](const object& step) { return read_pre_tokenizer_step(step); });
    return read_pre_tokenizer_step(json);
  }

  Status read_pre_tokenizer_step(const object& json) {
    const std::string type = text_of(json, "type");
    if (type == "Split") return read_split(json);
    if (type == "ByteLevel") return read_byte_level(json);
    if (type == "Metaspace") return read_metaspace(json);
    if (type != "Digits") return unsupported("pre-tokeniser", type);
    steps_.push_back({flag_of(json, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)"});
    return {};
  }

  Status read_split(const object& json) {
    const auto pattern = object_of(json, "pattern");
    std::string expression = pattern ? text_of(*pattern, "Regex") : "";
    if (expression.empty() && pattern) expression = escape_pattern(text_of(*pattern, "String"));
    if (expression.empty()) return unsupported("pre-tokeniser", "Split without a pattern");
    const std::string behavior = text_of(json, "behavior");
    const bool invert = flag_of(json, "invert");
    if (behavior == "Isolated" && !invert) {
      steps_.push_back({expression, PreTokenizer::Keep::all});
    } else if (behavior == "Removed" && invert) {
      steps_.push_back({expression, PreTokenizer::Keep::matches});
    } else {
      return unsupported("pre-tokeniser",
                         fmt::format("Split with behavior {}{}", behavior, invert ? ", inverted" : ""));
    }
    return {};
  }

  Status read_byte_level(const object& json) {
    if (flag_of(json, "add_prefix_space", true)) {
      if (!steps_.empty()) return unsupported("pre-tokeniser", "ByteLevel with add_prefix_space after another cut");
      spec_.normalizer.add({Normalizer::Kind::prepend_missing, "", " "});
    }
    if (flag_of(json, "use_regex", true)) steps_.push_back({kGpt2Pattern});
    return {};
  }

  /// "\u2581" for each blank and, unless told otherwise, before the text; with `split` each begins a word.
  Status read_metaspace(const object& json) {
    const std::string mark = text_of(json, "replacement");
    if (mark != kBlankMark || !steps_.empty())
      return unsupported("pre-tokeniser", "Metaspace with another mark or after another cut");
    std::string scheme = text_of(json, "prepend_scheme");
    if (scheme.empty()) scheme = flag_of(json, "add_prefix_space", true) ? "always" : "never";
    spec_.normalizer.add({Normalizer::Kind::replace, " ", mark});
    if (scheme == "always") spec_.normalizer.add({Normalizer::Kind::prepend_missing, "", mark});
    if (scheme == "first") spec_.normalizer.add({Normalizer::Kind::prepend_first, "", mark});
    spec_.strips_leading_space = scheme != "never";
    if (flag_of(json, "split", true)) steps_.push_back({R"(\x{2581}[^\x{2581}]*)"});
    return {};
  }

  Status read_post_processor(const object& json) {
    const std::string type = text_of(json, "type");
    if (type == "Sequence")
      return for_each_in(json, "processors", [&](const object& step) { return read_post_processor(step); });
    if (type == "ByteLevel") return {};
    if (type != "TemplateProcessing") return unsupported("post-processor", type);
    const auto parts = array_of(json, "single");
    if (!parts) return wrong("the TemplateProcessing has no list \"single\"");
    bool behind_text = false;
    for (const element item : *parts) {
      object part;
      if (item.get(part) != simdjson::SUCCESS) return wrong("the TemplateProcessing's parts must be objects");
      if (object_of(part, "Sequence")) behind_text = true;
      if (const auto special = object_of(part, "SpecialToken"))
        TS_TRY_STATUS(add_template_token(json, text_of(*special, "id"), behind_text ? spec_.after : spec_.before));
    }
    return {};
  }

  Status add_template_token(const object& json, const std::string& name, std::vector<TokenId>& out) {
    const auto specials = object_of(json, "special_tokens");
    const auto special = specials ? object_of(*specials, name) : std::nullopt;
    const auto ids = special ? array_of(*special, "ids") : std::nullopt;
    if (!ids) return wrong(fmt::format("the template's token {} has no numbers", modelfile::in_quotes(name)));
    for (const element item : *ids) {
      std::uint64_t id = 0;
      if (item.get(id) != simdjson::SUCCESS || id >= spec_.vocabulary.size())
        return wrong(fmt::format("the template's token {} is not in the vocabulary", modelfile::in_quotes(name)));
      out.push_back(static_cast<TokenId>(id));
    }
    return {};
  }

  /// Only the removal of the first blank differs between the decoders of one kind.
  void read_decoder(const object& json) {
    const std::string type = text_of(json, "type");
    if (type == "Strip" && text_of(json, "content") == " ") spec_.strips_leading_space = true;
    const auto list = array_of(json, "decoders");
    if (!list) return;
    for (const element item : *list) {
      object step;
      if (item.get(step) == simdjson::SUCCESS) read_decoder(step);
    }
  }

  Status read_specials() {
    TS_TRY(const TokenizerConfig config, load_tokenizer_config(path_.parent_path()));
    spec_.chat_template = config.chat_template;
    spec_.bos = spec_.vocabulary.find(config.bos_token);
    if (spec_.bos == kNoToken && config.bos_token.empty() && !spec_.before.empty()) spec_.bos = spec_.before.front();
    const TokenId eos = spec_.vocabulary.find(config.eos_token);
    if (eos != kNoToken) spec_.eos.push_back(eos);
    if (!spec_.eos.empty()) return {};
    // Without a configuration: the names that end-of-text tokens go by.
    for (const char* name :
         {"</s>", "<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<eos>", "<end_of_turn>"}) {
      const TokenId id = spec_.vocabulary.find(name);
      if (id != kNoToken && spec_.vocabulary.kind(id) == PieceKind::control) spec_.eos.push_back(id);
    }
    return {};
  }

  std::filesystem::path path_;
  BpeSpec spec_;
  std::vector<PreTokenizer::Step> steps_;
};

/// A special token stands as a text or as an object with "content".
std::string special_text(const object& json, std::string_view key) {
  if (const auto token = object_of(json, key)) return text_of(*token, "content");
  return text_of(json, key);
}

/// A template is a text, or a list of named ones of which "default" counts.
std::string template_text(const object& json) {
  const auto list = array_of(json, "chat_template");
  if (!list) return text_of(json, "chat_template");
  for (const element item : *list) {
    object entry;
    if (item.get(entry) == simdjson::SUCCESS && text_of(entry, "name") == "default") return text_of(entry, "template");
  }
  return {};
}

}  // namespace

Result<BpeSpec> spec_from_tokenizer_json(const std::filesystem::path& path) { return TokenizerJson(path).read(); }

Result<TokenizerConfig> load_tokenizer_config(const std::filesystem::path& folder) {
  TokenizerConfig config;
  if (const auto jinja = folder / "chat_template.jinja"; std::filesystem::exists(jinja)) {
    TS_TRY(const modelfile::MappedFile file, modelfile::MappedFile::open(jinja));
    config.chat_template = file.text();
  }
  const auto path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return config;
  TS_TRY(const modelfile::MappedFile file, modelfile::MappedFile::open(path));
  simdjson::dom::parser parser;
  object root;
  if (parser.parse(file.text().data(), file.text().size()).get(root) != simdjson::SUCCESS)
    return usage_error(fmt::format("{}: expected a JSON object, found {}; fetch it again", path.string(),
                                   modelfile::describe_start(file.bytes())));
  config.bos_token = special_text(root, "bos_token");
  config.eos_token = special_text(root, "eos_token");
  if (config.chat_template.empty()) config.chat_template = template_text(root);
  bool add_bos = false;
  if (root.at_key("add_bos_token").get(add_bos) == simdjson::SUCCESS) config.add_bos_token = add_bos;
  return config;
}

}  // namespace tokenstone::token
