// A server's own tokenizer over its /tokenize and /detokenize, for prompts of exact length when no tokenizer is at
// hand. Used while the schedule is made, never during a run: every call is a blocking HTTP exchange. Ownership:
// immutable after connecting. Threads: any. Failure: connecting fails when the server has no such endpoints; a call
// that fails later gives an empty answer, which the schedule counts as a deviation.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "http/request_writer.h"
#include "http/url.h"
#include "token/tokenizer.h"

namespace tokenstone::loadgen {

struct RemoteTokenizerOptions {
  http::Url url;
  std::vector<http::Header> headers;
  std::string model;  ///< may be empty
};

/// Errors: ErrorKind::not_found when the server does not serve /tokenize and /detokenize in vLLM's form.
Result<token::TokenizerPtr> connect_remote_tokenizer(RemoteTokenizerOptions options);

}  // namespace tokenstone::loadgen
