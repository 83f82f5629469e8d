#include "record/records.h"

namespace tokenstone::record {
namespace {

constexpr std::string_view kErrorNames[] = {"",
                                            "refused",
                                            "connect_timeout",
                                            "first_token_timeout",
                                            "gap_timeout",
                                            "total_timeout",
                                            "reset",
                                            "http_status",
                                            "stream_error",
                                            "truncated_stream",
                                            "malformed_event",
                                            "not_event_stream",
                                            "empty_stream",
                                            "unsupported_content_encoding",
                                            "server_closed",
                                            "cancelled"};
constexpr std::string_view kSourceNames[] = {"", "usage", "tokenizer", "events", "engine"};
constexpr std::string_view kKindNames[] = {"text", "reasoning", "tool_call"};

template <class Enum, std::size_t N>
bool find_name(const std::string_view (&names)[N], std::string_view name, Enum& value) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return false;
  value = static_cast<Enum>(found - std::begin(names));
  return true;
}

}  // namespace

std::string_view to_string(ErrorClass error) { return kErrorNames[static_cast<std::size_t>(error)]; }
bool from_string(std::string_view name, ErrorClass& error) { return find_name(kErrorNames, name, error); }

std::string_view to_string(LengthSource source) { return kSourceNames[static_cast<std::size_t>(source)]; }
bool from_string(std::string_view name, LengthSource& source) { return find_name(kSourceNames, name, source); }

std::string_view to_string(TokenKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
bool from_string(std::string_view name, TokenKind& kind) { return find_name(kKindNames, name, kind); }

}  // namespace tokenstone::record
