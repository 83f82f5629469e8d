// Values that may be errors, for what can be expected to fail at run time.
//
// An Error's message is one line for the person at the terminal: what was expected, what was found, what to do next.
// `kind` decides the exit code: usage -> 1, unreachable -> 4, invalid_run -> 3, internal -> 4.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace tokenstone {

enum class ErrorKind {
  usage,        ///< wrong flags, files or configuration: nothing was sent, nothing written
  unreachable,  ///< the target cannot be reached or answers wrongly before the run
  invalid_run,  ///< the run took place but its result must not be used
  interrupted,  ///< Ctrl-C, disk full
  not_found,    ///< a named thing does not exist (404)
  too_large,    ///< over a limit (413, or 400 with both numbers)
  busy,         ///< a queue is full (429)
  internal,     ///< ours
};

struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::usage;
  std::string message;
  std::string param;  ///< the field or flag at fault, when there is one
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> fail(ErrorKind kind, std::string message, std::string param = {}) {
  return std::unexpected(Error{kind, std::move(message), std::move(param)});
}
inline std::unexpected<Error> usage_error(std::string message, std::string param = {}) {
  return fail(ErrorKind::usage, std::move(message), std::move(param));
}

}  // namespace tokenstone

#define TS_CONCAT_INNER(a, b) a##b
#define TS_CONCAT(a, b) TS_CONCAT_INNER(a, b)
/// Evaluates an expression of type Result<T>; returns its error from the enclosing function, else binds `decl` to the
/// value.
#define TS_TRY(decl, expression)                                                                              \
  auto TS_CONCAT(ts_try_, __LINE__) = (expression);                                                           \
  if (!TS_CONCAT(ts_try_, __LINE__)) return std::unexpected(std::move(TS_CONCAT(ts_try_, __LINE__)).error()); \
  decl = *std::move(TS_CONCAT(ts_try_, __LINE__))
/// The same for a Status.
#define TS_TRY_STATUS(expression)                                                 \
  do {                                                                            \
    auto ts_try_status = (expression);                                            \
    if (!ts_try_status) return std::unexpected(std::move(ts_try_status).error()); \
  } while (false)
