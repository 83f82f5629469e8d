#include <fmt/format.h>

#include "modelfile/mapped_file.h"
#include "modelfile/model.h"
#include "token/loaders.h"

namespace tokenstone::token {
namespace {

TokenizerPtr make(BpeSpec spec) { return std::make_shared<const BpeTokenizer>(std::move(spec)); }

Result<std::filesystem::path> find_in_folder(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (std::filesystem::exists(folder / name)) return folder / name;
  std::vector<std::filesystem::path> ggufs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".gguf") ggufs.push_back(entry.path());
  if (ggufs.size() == 1) return ggufs.front();
  return usage_error(fmt::format(
      "{}: expected tokenizer.json, tokenizer.model or one GGUF file in this folder, found {}; give the file's "
      "own path",
      folder.string(), ggufs.empty() ? "none" : "several GGUF files"));
}

enum class Format { gguf, json, sentencepiece };

/// By content: names lie more often than first bytes. A SentencePiece model begins with a newline (field 1 of its
/// message).
Result<Format> format_of(const std::filesystem::path& path) {
  TS_TRY(const modelfile::MappedFile file, modelfile::MappedFile::open(path));
  const std::string_view text = file.text();
  if (text.starts_with("GGUF")) return Format::gguf;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (path.extension() == ".json" || (first != std::string_view::npos && text[first] == '{')) return Format::json;
  return Format::sentencepiece;
}

}  // namespace

Result<TokenizerPtr> tokenizer_from_gguf(const modelfile::ModelFile& model) {
  TS_TRY(BpeSpec spec, spec_from_gguf(model));
  return make(std::move(spec));
}

Result<TokenizerPtr> load_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return usage_error(
        fmt::format(
            "{}: no such file or folder; give a tokenizer.json, a tokenizer.model, a GGUF file or a folder with one",
            path.string()),
        "tokenizer");
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path)) {
    TS_TRY(file, find_in_folder(path));
  }
  TS_TRY(const Format format, format_of(file));
  if (format == Format::gguf) {
    TS_TRY(const auto model, modelfile::load_gguf(file));
    return tokenizer_from_gguf(*model);
  }
  TS_TRY(BpeSpec spec, format == Format::json ? spec_from_tokenizer_json(file) : spec_from_sentencepiece(file));
  return make(std::move(spec));
}

}  // namespace tokenstone::token
