// The fields of OpenAI's and vLLM's requests that this server does not act on, and the values at which they ask for
// nothing.
//
// Common clients send many fields at neutral values (`"n":1`, `"logprobs":null`, `"store":false`); those pass. At any
// other value such a field is refused by name, because ignoring it would answer another question than the one asked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokenstone::server {

enum class Neutral {
  only_null,  ///< null alone (always neutral)
  zero,
  one,
  is_false,
  is_true,
  empty,        ///< "", [] or {}
  text_format,  ///< {"type":"text"}
  anything,     ///< only describes the request; kept out of the answer
};

struct ForeignField {
  std::string_view name;
  Neutral neutral;
  std::string_view instead;  ///< completes "NAME is not supported: ..."
};

/// Sorted by name.
std::span<const ForeignField> foreign_fields();
const ForeignField* find_foreign_field(std::string_view name);

}  // namespace tokenstone::server
