// Text into token ids and back.
//
// What: byte-level BPE and SentencePiece-style BPE from tokenizer.json, tokenizer.model or a GGUF's metadata, and the
// built-in tokenizer of the built-in model shapes (every id decodes to non-empty ASCII text; any text can be encoded).
// Ownership: immutable after loading, shared. Threads: every const member may be called from any thread at once.
// Failure: loading gives an Error (ErrorKind::usage) with the next step; encoding and decoding cannot fail.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::modelfile {
struct ModelFile;
}

namespace tokenstone::token {

struct EncodeOptions {
  bool add_special = true;     ///< begin-of-text and the like, as the model's own post-processor does
  bool parse_special = false;  ///< special tokens written out in the text become their ids
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const = 0;
  /// The bytes that a token adds to a running text; not necessarily valid UTF-8 alone. Empty for special tokens unless
  /// `keep_special`. Ids outside the vocabulary give nothing.
  virtual std::string token_bytes(TokenId id, bool keep_special) const = 0;
  /// Whole text of a sequence; ill-formed UTF-8 becomes U+FFFD; the leading blank of SentencePiece is removed as its
  /// decoder does.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special = true) const = 0;
  virtual std::size_t vocab_size() const = 0;
  virtual bool is_special(TokenId id) const = 0;
  virtual TokenId bos() const = 0;  ///< kNoToken when there is none
  virtual std::vector<TokenId> eos() const = 0;
  /// True when the first token's leading blank is not part of the text (SentencePiece with a dummy prefix).
  virtual bool strips_leading_space() const = 0;
  virtual std::string name() const = 0;           ///< for reports: kind and where it came from
  virtual std::string chat_template() const = 0;  ///< Jinja source, or empty
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// A tokenizer.json, a tokenizer.model, a GGUF file, or a folder that holds one of them.
Result<TokenizerPtr> load_tokenizer(const std::filesystem::path& path);
Result<TokenizerPtr> tokenizer_from_gguf(const modelfile::ModelFile& model);
/// For built-in shapes. Every id, the three specials too, gives non-empty ASCII text under every option; ids 0 to 255
/// are bytes, the last three <|endoftext|>, <|im_start|> and <|im_end|> (the end of text), the others words with a
/// blank before them, for which encode(decode(ids)) == ids. Precondition: vocab_size >= kBuiltinLeastVocabulary.
inline constexpr std::size_t kBuiltinLeastVocabulary = 260;
TokenizerPtr builtin_tokenizer(std::size_t vocab_size);

/// Tokens of one sequence into text, piece by piece: only whole characters come out; bytes that can never become one
/// come out as U+FFFD. Text that may be the beginning of a stop string is held back.
class StreamDecoder {
 public:
  struct Piece {
    std::string text;
    bool stopped = false;
    std::string stop_reason;
  };
  /// `continues_prompt`: the sequence goes on after a prompt, so a leading blank belongs to the text; else it is
  /// removed as decode() does. Empty stop strings are left out. The stop string that ends first counts, whatever the
  /// cuts between tokens.
  StreamDecoder(TokenizerPtr tokenizer, std::vector<std::string> stop, bool include_stop, bool skip_special,
                bool continues_prompt = true);
  Piece push(TokenId id);
  /// What is left: held-back text and an unfinished character (as U+FFFD).
  std::string finish();

 private:
  TokenizerPtr tokenizer_;
  std::vector<std::string> stop_;
  bool include_stop_;
  bool skip_special_;
  bool strip_blank_;     ///< the first blank is still to be removed
  std::string bytes_;    ///< an unfinished character
  std::string pending_;  ///< decoded, held back
  bool stopped_ = false;
};

struct ChatTurn {
  std::string role;
  std::string content;
};

/// The chat formats that are known by their marks; a Jinja source that matches none is refused by name.
enum class ChatFamily { chatml, llama2, llama3, mistral, zephyr, gemma };
std::string_view to_string(ChatFamily family);
Result<ChatFamily> parse_chat_family(std::string_view name);
/// Recognises a Jinja template; an empty source gives ChatML.
Result<ChatFamily> recognise_chat_template(std::string_view jinja);
/// The prompt text for these turns, ending where the assistant's answer begins. Without the begin-of-text token: encode
/// it with add_special and parse_special both on. Roles that the family does not know, and an order that it cannot
/// express, are refused.
Result<std::string> render_chat(ChatFamily family, std::span<const ChatTurn> turns);

}  // namespace tokenstone::token
