// tokenizer.model: the protocol buffer ModelProto of SentencePiece. In its wire format a field is a varint (number << 3
// | type) and a value: type 0 a varint, 1 eight bytes, 2 a varint length and bytes, 5 four bytes. Used here:
//   1 pieces   {1 text, 2 score (float), 3 kind}
//   2 trainer  {3 model type: 1 unigram, 2 BPE; 35 byte fallback; 40 unknown id; 41 begin id; 42 end id}
//   3 normaliser {2 character map, 3 add a blank before the text, 4 remove extra blanks}
#include <fmt/format.h>

#include "modelfile/byte_reader.h"
#include "modelfile/mapped_file.h"
#include "token/loaders.h"
#include "token/utf8.h"

namespace tokenstone::token {
namespace {

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  ///< of a varint
  float real = 0;           ///< of four bytes
  std::string_view bytes;   ///< of a length-delimited value
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : reader_(std::as_bytes(std::span(message))) {}

  bool at_end() const { return reader_.remaining() == 0; }
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1FFFFFFF) return std::nullopt;
    Field field;
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    switch (*tag & 7) {
      case 0:
        return with(field, field.value, varint());
      case 1:
        return with(field, field.value, reader_.number<std::uint64_t>());
      case 2: {
        const auto length = varint();
        return length ? with(field, field.bytes, reader_.text(*length)) : std::nullopt;
      }
      case 5:
        return with(field, field.real, reader_.number<float>());
      default:
        return std::nullopt;
    }
  }

 private:
  template <class T>
  static std::optional<Field> with(Field& field, T& slot, std::optional<T> value) {
    if (!value) return std::nullopt;
    slot = *value;
    return field;
  }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.number<std::uint8_t>();
      if (!byte) return std::nullopt;
      value |= static_cast<std::uint64_t>(*byte & 0x7F) << shift;
      if ((*byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  modelfile::ByteReader reader_;
};

struct Piece {
  std::string text;
  double score = 0;
  std::uint64_t kind = 1;
};

struct Model {
  std::vector<Piece> pieces;
  std::uint64_t model_type = 1;
  bool byte_fallback = false;
  std::int32_t unknown = 0, bos = 1, eos = 2;
  std::string_view character_map;
  bool add_prefix = true, remove_extra_blanks = true;
};

bool read_piece(std::string_view message, Piece& piece) {
  for (FieldReader fields(message); !fields.at_end();) {
    const auto field = fields.next();
    if (!field) return false;
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = field->real;
    if (field->number == 3) piece.kind = field->value;
  }
  return piece.kind >= 1 && piece.kind <= 6 && is_valid_utf8(piece.text);
}

bool read_trainer(std::string_view message, Model& model) {
  for (FieldReader fields(message); !fields.at_end();) {
    const auto field = fields.next();
    if (!field) return false;
    const auto id = static_cast<std::int32_t>(field->value);
    if (field->number == 3) model.model_type = field->value;
    if (field->number == 35) model.byte_fallback = field->value != 0;
    if (field->number == 40) model.unknown = id;
    if (field->number == 41) model.bos = id;
    if (field->number == 42) model.eos = id;
  }
  return true;
}

bool read_normalizer(std::string_view message, Model& model) {
  for (FieldReader fields(message); !fields.at_end();) {
    const auto field = fields.next();
    if (!field) return false;
    if (field->number == 2) model.character_map = field->bytes;
    if (field->number == 3) model.add_prefix = field->value != 0;
    if (field->number == 4) model.remove_extra_blanks = field->value != 0;
  }
  return true;
}

bool read_model(std::string_view bytes, Model& model) {
  for (FieldReader fields(bytes); !fields.at_end();) {
    const auto field = fields.next();
    if (!field) return false;
    bool good = true;
    if (field->number == 1) good = read_piece(field->bytes, model.pieces.emplace_back());
    if (field->number == 2) good = read_trainer(field->bytes, model);
    if (field->number == 3) good = read_normalizer(field->bytes, model);
    if (!good) return false;
  }
  return !model.pieces.empty();
}

Status check_supported(const std::string& path, const Model& model) {
  constexpr std::string_view advice = "give the model's tokenizer.json instead";
  if (model.model_type != 2)
    return usage_error(fmt::format("{}: expected a BPE model, found {}; {}", path,
                                   model.model_type == 1 ? "a unigram model" : "a word or character model", advice));
  if (!model.character_map.empty())
    return usage_error(fmt::format("{}: the model's own character map is not supported; {}", path, advice));
  if (model.remove_extra_blanks)
    return usage_error(
        fmt::format("{}: removing extra blanks (remove_extra_whitespaces) is not supported; {}", path, advice));
  return {};
}

TokenId valid_id(const BpeSpec& spec, std::int32_t id) { return spec.vocabulary.contains(id) ? id : kNoToken; }

}  // namespace

void merges_from_scores(std::span<const double> scores, BpeSpec& spec) {
  const Vocabulary& vocabulary = spec.vocabulary;
  const auto is_text = [&](TokenId id) {
    return vocabulary.kind(id) == PieceKind::normal || vocabulary.kind(id) == PieceKind::unused;
  };
  // Equal scores share a rank: SentencePiece then takes the leftmost pair.
  std::vector<double> order(scores.begin(), scores.end());
  std::ranges::sort(order, std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::unordered_map<std::string_view, Symbol> extras;
  const auto symbol_of = [&](std::string_view part) -> Symbol {
    const TokenId id = vocabulary.find(part);
    if (id != kNoToken && is_text(id)) return id;
    if (char_length(part, 0) != part.size()) return -1;
    return extras.try_emplace(part, static_cast<Symbol>(vocabulary.size() + extras.size())).first->second;
  };
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view piece = vocabulary.piece(id);
    if (!is_text(id) || vocabulary.find(piece) != id) continue;
    const auto rank =
        static_cast<std::uint32_t>(std::ranges::lower_bound(order, scores[i], std::greater<>()) - order.begin());
    for (std::size_t at = piece.empty() ? 0 : char_length(piece, 0); at < piece.size(); at += char_length(piece, at)) {
      const Symbol left = symbol_of(piece.substr(0, at)), right = symbol_of(piece.substr(at));
      if (left >= 0 && right >= 0) spec.merges.push_back({left, right, id, rank});
    }
  }
  spec.extra_symbols.resize(extras.size());
  for (const auto& [text, symbol] : extras)
    spec.extra_symbols[static_cast<std::size_t>(symbol) - vocabulary.size()] = text;
}

void add_sentencepiece_blanks(bool add_prefix, BpeSpec& spec) {
  if (add_prefix) spec.normalizer.add({Normalizer::Kind::prepend, "", std::string(kBlankMark)});
  spec.normalizer.add({Normalizer::Kind::replace, " ", std::string(kBlankMark)});
  spec.strips_leading_space = add_prefix;
}

void add_tokens_by_kind(BpeSpec& spec) {
  for (std::size_t i = 0; i < spec.vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const PieceKind kind = spec.vocabulary.kind(id);
    const bool special = kind == PieceKind::control || kind == PieceKind::unknown;
    if (!special && kind != PieceKind::user_defined) continue;
    const std::string& piece = spec.vocabulary.piece(id);
    spec.added.push_back({spec.byte_level ? piece : replace_all(piece, kBlankMark, " "), id, special});
  }
}

Result<BpeSpec> spec_from_sentencepiece(const std::filesystem::path& path) {
  TS_TRY(const modelfile::MappedFile file, modelfile::MappedFile::open(path));
  Model model;
  if (!read_model(file.text(), model))
    return usage_error(fmt::format(
        "{}: expected a tokenizer.json, a SentencePiece model or a GGUF file; the file begins with {} and is "
        "none of them, or is truncated or damaged: fetch it again",
        path.string(), modelfile::describe_start(file.bytes())));
  TS_TRY_STATUS(check_supported(path.string(), model));
  std::vector<std::string> texts;
  std::vector<double> scores;
  for (const Piece& piece : model.pieces) {
    texts.push_back(piece.text);
    scores.push_back(piece.score);
  }
  BpeSpec spec;
  spec.name = fmt::format("SentencePiece BPE ({})", path.filename().string());
  spec.vocabulary = Vocabulary(std::move(texts));
  for (std::size_t i = 0; i < model.pieces.size(); ++i)
    spec.vocabulary.set_kind(static_cast<TokenId>(i), static_cast<PieceKind>(model.pieces[i].kind));
  merges_from_scores(scores, spec);
  add_sentencepiece_blanks(model.add_prefix, spec);
  add_tokens_by_kind(spec);
  spec.byte_fallback = model.byte_fallback;
  spec.fuse_unknown = true;
  spec.unknown = valid_id(spec, model.unknown);
  spec.bos = valid_id(spec, model.bos);
  if (valid_id(spec, model.eos) != kNoToken) spec.eos.push_back(model.eos);
  TS_TRY(const TokenizerConfig config, load_tokenizer_config(path.parent_path()));
  // SentencePiece itself adds nothing; the tokenizers built on it begin a text with <s> unless their configuration says
  // no.
  if (spec.bos != kNoToken && config.add_bos_token.value_or(true)) spec.before.push_back(spec.bos);
  spec.chat_template = config.chat_template;
  return spec;
}

}  // namespace tokenstone::token
