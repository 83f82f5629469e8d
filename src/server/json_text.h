// Writing JSON by hand, for the bytes that are sent once per token. Appends to a string; never fails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokenstone::server {

/// `text` in quotation marks, escaped as Python's and Rust's writers do: short escapes, \u00XX for other control
/// characters, everything else as it is. Precondition: `text` is UTF-8.
void append_json_string(std::string& out, std::string_view text);
/// The same for text that came from outside: ill-formed UTF-8 becomes U+FFFD.
void append_json_untrusted(std::string& out, std::string_view text);
void append_integer(std::string& out, std::int64_t value);

}  // namespace tokenstone::server
