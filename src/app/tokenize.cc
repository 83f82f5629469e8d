// tokenstone tokenize: token ids of a text, or the text of token ids.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/text.h"
#include "token/tokenizer.h"

namespace tokenstone::app {
namespace {

struct Options {
  std::string file;
  std::string tokenizer;
  std::optional<std::string> text;
  std::optional<std::string> json;
  bool ids = false;
  bool decode = false;
  bool add_special = true;
  bool parse_special = false;
};

FlagSet flag_set(Options& options) {
  FlagSet flags("tokenize", "Token ids of a text, or with --decode the text of token ids.");
  flags.positional("FILE", &options.file, "where the text (or the ids) stands; standard input when missing or -");
  flags.add("tokenizer", &options.tokenizer, "PATH",
            "a tokenizer.json, a tokenizer.model, a GGUF file, or a folder with one");
  flags.add("text", &options.text, "TEXT", "the text itself, instead of a file");
  flags.add("ids", &options.ids, "", "print the ids alone, on one line");
  flags.add("decode", &options.decode, "", "the input is ids, separated by blanks or commas; print their text");
  flags.add("add-special", &options.add_special, "",
            "put begin-of-text and the like around the text, as the model's tokenizer does");
  flags.add("parse-special", &options.parse_special, "", "special tokens written out in the text become their ids");
  flags.add("json", &options.json, "-", "print JSON on stdout; the only value is -");
  return flags;
}

Status check(const Options& options) {
  if (options.tokenizer.empty())
    return usage_error(
        "tokenize needs --tokenizer PATH: a tokenizer.json, a tokenizer.model, a GGUF file or a folder with one",
        "tokenizer");
  if (options.text && !options.file.empty())
    return usage_error("--text and a file exclude each other; give one of them", "text");
  if (options.ids && options.decode)
    return usage_error("--ids and --decode exclude each other; give one of them", "ids");
  if (options.json && *options.json != "-")
    return usage_error(fmt::format("--json takes only - (standard output), not '{}'", *options.json), "json");
  return {};
}

Result<std::string> read_input(const Options& options) {
  if (options.text) return *options.text;
  if (options.file.empty() || options.file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream in(options.file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad())
    return usage_error(fmt::format("cannot read {}; check the path, or give --text", options.file));
  return text;
}

Result<std::vector<TokenId>> read_ids(std::string_view text, const token::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  constexpr std::string_view separators = " \t\r\n,[]";
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(separators));
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokenizer.vocab_size()))
      return usage_error(
          fmt::format("'{}' is no token id; expected whole numbers from 0 to {}", word, tokenizer.vocab_size() - 1));
    ids.push_back(static_cast<TokenId>(*id));
    text.remove_prefix(word.size());
  }
}

/// A piece as it can be shown on one line: control characters and ill-formed bytes as escapes.
std::string shown(std::string_view bytes) {
  std::string out;
  const bool valid = to_valid_utf8(bytes) == bytes;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == '"')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7F || (!valid && byte >= 0x80))
      out += fmt::format("\\x{:02X}", byte);
    else
      out += c;
  }
  return out;
}

void print_tokens(const std::vector<TokenId>& ids, const token::Tokenizer& tokenizer, std::size_t bytes) {
  for (const TokenId id : ids) fmt::print("{:>8}  \"{}\"\n", id, shown(tokenizer.token_bytes(id, true)));
  fmt::print("{} tokens, {} bytes ({})\n", ids.size(), bytes, tokenizer.name());
}

void print_json(const std::vector<TokenId>& ids, const std::string& text, const token::Tokenizer& tokenizer) {
  const nlohmann::ordered_json json = {
      {"tokenizer", tokenizer.name()}, {"count", ids.size()}, {"tokens", ids}, {"text", text}};
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<int> tokenize(const Args& args) {
  Options options;
  FlagSet flags = flag_set(options);
  TS_TRY(const FlagSet::Parsed parsed, flags.parse(args));
  if (parsed.help) {
    std::fputs(flags.help().c_str(), stdout);
    return 0;
  }
  TS_TRY_STATUS(check(options));
  TS_TRY(const token::TokenizerPtr tokenizer, token::load_tokenizer(options.tokenizer));
  TS_TRY(std::string text, read_input(options));
  std::vector<TokenId> ids;
  if (options.decode) {
    TS_TRY(ids, read_ids(text, *tokenizer));
    text = tokenizer->decode(ids, !options.parse_special);
  } else {
    ids = tokenizer->encode(text, {.add_special = options.add_special, .parse_special = options.parse_special});
  }
  if (options.json)
    print_json(ids, text, *tokenizer);
  else if (options.decode)
    fmt::print("{}\n", text);
  else if (options.ids)
    fmt::print("{}\n", fmt::join(ids, " "));
  else
    print_tokens(ids, *tokenizer, text.size());
  return 0;
}

}  // namespace

int run_tokenize(const Args& args) {
  const auto code = tokenize(args);
  return code ? *code : report_error(code.error());
}

}  // namespace tokenstone::app
