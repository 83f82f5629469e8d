// Units and identifiers that every module shares.
//
// Times are signed nanoseconds. Measured times count from an arbitrary origin of the monotonic clock, virtual times
// from zero; a record's times count from the run's start. `kUnknownTime` marks a time that was not observed.
// Identifiers of different things are different types, so that a block can never be taken for a sequence.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tokenstone {

using TimeNs = std::int64_t;
inline constexpr TimeNs kUnknownTime = INT64_MIN;
inline constexpr TimeNs kNever = INT64_MAX;
inline constexpr TimeNs kMicrosecond = 1'000;
inline constexpr TimeNs kMillisecond = 1'000'000;
inline constexpr TimeNs kSecond = 1'000'000'000;

constexpr double to_seconds(TimeNs t) { return static_cast<double>(t) * 1e-9; }
constexpr double to_millis(TimeNs t) { return static_cast<double>(t) * 1e-6; }
/// Nearest nanosecond; precondition: |seconds| < 9.2e9.
constexpr TimeNs from_seconds(double seconds) {
  return static_cast<TimeNs>(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
}

/// A vocabulary entry's number. Negative: no token.
using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value = 0;
  auto operator<=>(const Id&) const = default;
};

/// A KV block of the pool; `[0, num_blocks)`.
using BlockId = Id<struct BlockTag>;
/// A sequence (request) inside the engine; never reused within one process.
using SeqId = Id<struct SeqTag, std::uint64_t>;
/// A request handed to a Target.
using Ticket = Id<struct TicketTag, std::uint64_t>;
using TimerId = Id<struct TimerTag, std::uint64_t>;

}  // namespace tokenstone

template <class Tag, class Rep>
struct std::hash<tokenstone::Id<Tag, Rep>> {
  std::size_t operator()(tokenstone::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
