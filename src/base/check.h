// Checks for programmer errors and for the state that the engine keeps: they stay on in release builds and stop the
// process.
#pragma once

#include <string_view>

namespace tokenstone {

/// Prints `file:line: check failed: condition (message)` to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace tokenstone

#define TS_CHECK(condition, message)                                         \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::tokenstone::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
