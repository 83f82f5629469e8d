// The program's version, in one place.
#pragma once

namespace tokenstone::app {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace tokenstone::app
