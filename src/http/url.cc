#include "http/url.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::http {
namespace {

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return usage_error(fmt::format("expected an address like http://127.0.0.1:8000, found '{}': {}", text, why),
                     "base-url");
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; the port's text is empty when there is none.
bool split_authority(std::string_view authority, std::string_view& host, std::string_view& port) {
  port = {};
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return false;
    host = authority.substr(1, close - 1);
    authority.remove_prefix(close + 1);
    if (authority.empty()) return !host.empty();
    if (authority.front() != ':' || authority.size() == 1) return false;
    port = authority.substr(1);
    return !host.empty();
  }
  const std::size_t colon = authority.find(':');
  host = authority.substr(0, colon);
  if (colon == std::string_view::npos) return !host.empty();
  port = authority.substr(colon + 1);
  return !host.empty() && !port.empty() && port.find(':') == std::string_view::npos;
}

bool has_unsafe_byte(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

}  // namespace

std::string Url::authority() const {
  std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != 80) name += fmt::format(":{}", port);
  return name;
}

std::string Url::text() const { return "http://" + authority() + path; }

Result<Url> parse_url(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  const std::string scheme = scheme_end == std::string_view::npos ? "" : to_lower(text.substr(0, scheme_end));
  if (scheme == "https") return bad(text, "https is not built yet; give an http:// address");
  if (text.starts_with("unix:")) return bad(text, "Unix sockets are not built yet; give an http:// address");
  if (scheme.empty()) return bad(text, "the http:// in front is missing");
  if (scheme != "http") return bad(text, fmt::format("unknown scheme '{}'", scheme));
  if (has_unsafe_byte(text)) return bad(text, "it holds a blank or control character");
  std::string_view rest = text.substr(scheme_end + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) return bad(text, "a query or fragment cannot be part of it");
  const std::size_t slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos)
    return bad("...", "a user or password cannot be part of it; use --header");
  std::string_view host;
  std::string_view port;
  if (!split_authority(authority, host, port)) return bad(text, "the host or port is not readable");
  Url url;
  url.host = host;
  if (!port.empty()) {
    const auto number = parse_int(port);
    if (!number || *number < 1 || *number > 65535) return bad(text, fmt::format("port '{}' is not in 1..65535", port));
    url.port = static_cast<std::uint16_t>(*number);
  }
  if (slash != std::string_view::npos) url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::string join_path(const Url& url, std::string_view endpoint) {
  std::string path = url.path;
  if (!endpoint.starts_with('/')) path += '/';
  path += endpoint;
  return path;
}

}  // namespace tokenstone::http
