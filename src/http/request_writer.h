// Writes HTTP/1.1 requests as bytes.
//
// Ownership: values. Threads: any. Units: none.
// Failure: `check_header` refuses what would break the framing; `write_request` takes checked headers only
// (precondition).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/url.h"

namespace tokenstone::http {

struct Header {
  std::string name;
  std::string value;
};

/// Refuses an empty or ill-formed name, a line end in the value (its text is never repeated: it may be a secret), and
/// the headers that the writer itself sets: Host, Content-Length, Transfer-Encoding, Connection, Accept-Encoding.
Status check_header(const Header& header);

/// `path` is the whole request target (see join_path). Adds Host, User-Agent, Accept-Encoding: identity (a packed event
/// stream cannot be stamped event by event), and with a body Content-Length and, if not given, Content-Type:
/// application/json.
std::string write_request(std::string_view method, const Url& url, std::string_view path,
                          std::span<const Header> headers, std::string_view body);

}  // namespace tokenstone::http
