#include "app/command.h"

#include <cstdio>

namespace tokenstone::app {

int report_error(const Error& error) {
  std::fprintf(stderr, "tokenstone: %s\n", error.message.c_str());
  switch (error.kind) {
    case ErrorKind::unreachable:
    case ErrorKind::interrupted:
    case ErrorKind::internal:
      return 4;
    case ErrorKind::invalid_run:
      return 3;
    default:
      return 1;
  }
}

}  // namespace tokenstone::app
