#include "server/json_fields.h"

#include <fmt/format.h>

#include <cmath>

namespace tokenstone::server {
namespace {

using simdjson::dom::element_type;

bool is_number(JsonValue value, double wanted) {
  double number = 0;
  return value.is_number() && value.get(number) == simdjson::SUCCESS && number == wanted;
}

bool is_bool(JsonValue value, bool wanted) {
  bool flag = false;
  return value.get(flag) == simdjson::SUCCESS && flag == wanted;
}

bool is_empty(JsonValue value) {
  switch (value.type()) {
    case element_type::STRING:
      return value.get_string().value_unsafe().empty();
    case element_type::ARRAY:
      return value.get_array().value_unsafe().size() == 0;
    case element_type::OBJECT:
      return value.get_object().value_unsafe().size() == 0;
    default:
      return false;
  }
}

bool is_text_format(JsonValue value) {
  std::string_view type;
  return value.is_object() && value["type"].get(type) == simdjson::SUCCESS && type == "text";
}

/// One part of a message's content: text only.
ApiStatus read_part(std::string_view name, JsonValue part, std::string& text, bool first) {
  std::string_view type = "text", piece;
  if (part.get(piece) != simdjson::SUCCESS) {
    if (!part.is_object()) return wrong_type(name, "a string or an object", part);
    if (part["type"].get(type) != simdjson::SUCCESS || type != "text")
      return bad_request(
          fmt::format("{}: content parts of type '{}' are not supported; this server takes text only", name, type),
          std::string(name));
    if (part["text"].get(piece) != simdjson::SUCCESS)
      return bad_request(fmt::format("{}: a text part needs a string in 'text'", name), std::string(name));
  }
  if (!first) text += '\n';  // as vLLM joins the parts for formats that take strings
  text += piece;
  return {};
}

ApiStatus read_content(std::string_view name, JsonValue value, std::string& text) {
  if (value.is_null()) return {};
  if (value.is_string()) return read_string(name, value, text);
  simdjson::dom::array parts;
  if (value.get(parts) != simdjson::SUCCESS) return wrong_type(name, "a string or a list of text parts", value);
  bool first = true;
  for (const JsonValue part : parts) {
    if (auto status = read_part(name, part, text, first); !status) return status;
    first = false;
  }
  return {};
}

ApiStatus read_message(std::string_view name, JsonValue value, token::ChatTurn& turn) {
  simdjson::dom::object fields;
  if (value.get(fields) != simdjson::SUCCESS) return wrong_type(name, "an object with role and content", value);
  for (const auto [key, field] : fields) {
    const std::string path = fmt::format("{}.{}", name, key);
    if (key == "role") {
      if (auto status = read_string(path, field, turn.role); !status) return status;
    } else if (key == "content") {
      if (auto status = read_content(path, field, turn.content); !status) return status;
    } else if (key != "name" && !field.is_null() && !is_empty(field)) {
      return bad_request(fmt::format("{} is not supported; a message has role and content (text)", path), path);
    }
  }
  if (turn.role.empty())
    return bad_request(fmt::format("{}.role is missing; it is system, user or assistant", name), std::string(name));
  return {};
}

}  // namespace

std::string_view type_name(JsonValue value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a truth value";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

std::unexpected<ApiError> wrong_type(std::string_view name, std::string_view expected, JsonValue value) {
  return bad_request(fmt::format("{} must be {}; it is {}", name, expected, type_name(value)), std::string(name));
}

ApiStatus read_bool(std::string_view name, JsonValue value, bool& out) {
  if (value.is_null() || value.get(out) == simdjson::SUCCESS) return {};
  return wrong_type(name, "true or false", value);
}

ApiStatus read_string(std::string_view name, JsonValue value, std::string& out) {
  if (value.is_null()) return {};
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return wrong_type(name, "a string", value);
  out = text;
  return {};
}

ApiStatus read_integer(std::string_view name, JsonValue value, std::int64_t lo, std::int64_t hi,
                       std::optional<std::int64_t>& out) {
  if (value.is_null()) return {};
  std::int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS) {
    double real = 0;
    if (!value.is_number() || value.get(real) != simdjson::SUCCESS || real != std::floor(real) || std::abs(real) > 9e15)
      return wrong_type(name, "an integer", value);
    number = static_cast<std::int64_t>(real);
  }
  if (number < lo || number > hi)
    return bad_request(fmt::format("{} must lie between {} and {}; it is {}", name, lo, hi, number), std::string(name));
  out = number;
  return {};
}

ApiStatus read_number(std::string_view name, JsonValue value, double lo, double hi, double& out) {
  if (value.is_null()) return {};
  double number = 0;
  if (!value.is_number() || value.get(number) != simdjson::SUCCESS) return wrong_type(name, "a number", value);
  if (!(number >= lo && number <= hi))
    return bad_request(fmt::format("{} must lie between {} and {}; it is {}", name, lo, hi, number), std::string(name));
  out = number;
  return {};
}

ApiStatus read_token_ids(std::string_view name, JsonValue value, std::vector<TokenId>& out) {
  if (value.is_null()) return {};
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return wrong_type(name, "a list of token ids", value);
  out.clear();  // a field given twice: the last wins
  out.reserve(list.size());
  for (const JsonValue item : list) {
    std::int64_t id = 0;
    if (item.get(id) != simdjson::SUCCESS) return wrong_type(name, "a list of token ids (integers)", item);
    if (id < 0 || id > std::numeric_limits<TokenId>::max())
      return bad_request(fmt::format("{}: {} is no token id; ids count from 0", name, id), std::string(name));
    out.push_back(static_cast<TokenId>(id));
  }
  return {};
}

ApiStatus read_messages(std::string_view name, JsonValue value, std::vector<token::ChatTurn>& out) {
  if (value.is_null()) return {};
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return wrong_type(name, "a list of messages", value);
  out.clear();
  std::size_t index = 0;
  for (const JsonValue item : list) {
    token::ChatTurn turn;
    if (auto status = read_message(fmt::format("{}[{}]", name, index++), item, turn); !status) return status;
    out.push_back(std::move(turn));
  }
  if (out.empty())
    return bad_request(fmt::format("{} is empty; at least one message is needed", name), std::string(name));
  return {};
}

bool is_neutral(Neutral neutral, JsonValue value) {
  if (value.is_null()) return true;
  switch (neutral) {
    case Neutral::only_null:
      return false;
    case Neutral::zero:
      return is_number(value, 0);
    case Neutral::one:
      return is_number(value, 1);
    case Neutral::is_false:
      return is_bool(value, false);
    case Neutral::is_true:
      return is_bool(value, true);
    case Neutral::empty:
      return is_empty(value);
    case Neutral::text_format:
      return is_text_format(value);
    case Neutral::anything:
      return true;
  }
  return false;
}

}  // namespace tokenstone::server
