// Typed reading of one JSON field; shared by the decoders of api_request.cc. Private to src/server.
// Each reader takes the field's name and value, leaves `out` alone for null, and refuses another type by name.
#pragma once

#include <simdjson.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/field_rules.h"
#include "token/tokenizer.h"

namespace tokenstone::server {

using JsonValue = simdjson::dom::element;

std::string_view type_name(JsonValue value);
std::unexpected<ApiError> wrong_type(std::string_view name, std::string_view expected, JsonValue value);

ApiStatus read_bool(std::string_view name, JsonValue value, bool& out);
ApiStatus read_string(std::string_view name, JsonValue value, std::string& out);
/// Integers; doubles without a fraction count as such. Outside [lo, hi]: refused with both limits.
ApiStatus read_integer(std::string_view name, JsonValue value, std::int64_t lo, std::int64_t hi,
                       std::optional<std::int64_t>& out);
ApiStatus read_number(std::string_view name, JsonValue value, double lo, double hi, double& out);
ApiStatus read_token_ids(std::string_view name, JsonValue value, std::vector<TokenId>& out);
ApiStatus read_messages(std::string_view name, JsonValue value, std::vector<token::ChatTurn>& out);
bool is_neutral(Neutral neutral, JsonValue value);

}  // namespace tokenstone::server
