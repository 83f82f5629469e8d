// The address of an HTTP server: parsing of `--base-url`, joining of paths.
//
// Ownership: values. Threads: any. Units: none.
// Failure: a text that is no usable address is an Error (usage) that says what was expected. Only http:// is served
// yet; https:// and unix: are refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tokenstone::http {

struct Url {
  std::string host;  ///< without brackets, for the resolver
  std::uint16_t port = 80;
  std::string path;  ///< prefix without a closing slash: "" or "/proxy/a"

  /// `host:port` as the Host header wants it: IPv6 in brackets, port 80 left out.
  std::string authority() const;
  /// `http://authority/path`
  std::string text() const;
};

/// Example: "http://127.0.0.1:8000/v1/" -> {127.0.0.1, 8000, "/v1"}. Queries, fragments and passwords are refused.
Result<Url> parse_url(std::string_view text);

/// The request target: the URL's prefix followed by `endpoint`, which gets a slash in front if it has none.
std::string join_path(const Url& url, std::string_view endpoint);

}  // namespace tokenstone::http
