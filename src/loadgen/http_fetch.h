// One blocking HTTP exchange, for the checks before and after a run: models, version, tokenize, ready check, cache
// reset.
//
// Ownership: values. Threads: any; blocks up to `timeout`, so never on a loop that measures. Units: ns.
// Failure: no connection, no answer or no HTTP is an Error (unreachable); any HTTP status is a reply. Answers are
// capped at 64 MiB.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"
#include "http/request_writer.h"
#include "http/url.h"

namespace tokenstone::loadgen {

struct HttpReply {
  int status = 0;
  std::string content_type;  ///< lower case, without parameters
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

/// `path` is joined to the URL's prefix.
Result<HttpReply> http_get(const http::Url& url, std::string_view path, std::span<const http::Header> headers,
                           TimeNs timeout);
Result<HttpReply> http_post(const http::Url& url, std::string_view path, std::span<const http::Header> headers,
                            std::string_view body, TimeNs timeout);

/// The headers of a run: the extra ones, and the API key as bearer token when there is one.
std::vector<http::Header> with_api_key(std::vector<http::Header> headers, std::string_view api_key);

}  // namespace tokenstone::loadgen
