// What the server must know of the model behind the engine. Plain data, fixed before the server starts; any thread may
// read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "token/tokenizer.h"

namespace tokenstone::server {

struct ServedModel {
  std::vector<std::string> names;  ///< at least one; the first is the name in answers, all are accepted in requests
  std::string root;                ///< where it came from: a path or the name of a built-in shape
  token::TokenizerPtr tokenizer;
  Result<token::ChatFamily> chat_family = token::ChatFamily::chatml;  ///< or why chat requests are refused
  std::int32_t max_model_len = 0;
  std::int32_t vocab_size = 0;  ///< prompt ids lie in [0, vocab_size)
  std::uint32_t max_num_seqs = 256;
  std::uint32_t num_blocks = 0, block_size = 0;
  bool prefix_caching = true;
  std::string cache_dtype = "auto";
  std::uint64_t seed = 0;                                  ///< of requests that bring none of their own
  std::vector<std::pair<std::string, std::string>> about;  ///< further fields of /version: dtype, threads, variant ...
};

}  // namespace tokenstone::server
