// Laws of prompt and output lengths, and the named workloads made of them.
//
// Ownership: plain values. Threads: any. Units: tokens. Failure: parsing gives one line for a person.
// A law is a pure function of (seed, request index).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/rng.h"

namespace tokenstone::workload {

/// A length above it is a slip, in a flag or in a file.
inline constexpr std::int64_t kLongestLength = 10'000'000;

struct Lengths {
  std::int64_t input = 0;
  std::int64_t output = 0;
};

/// Whole numbers in [lo, hi], all equally likely.
struct LengthRange {
  std::int64_t lo = 1, hi = 1;
  std::int64_t draw(Rng& rng) const { return rng.uniform_int(lo, hi); }
};

/// One kind of request within a named workload.
struct RequestClass {
  std::string_view name;
  LengthRange input, output;
  int tenths = 10;  ///< share of the workload
};

struct NamedWorkload {
  std::string_view name;
  std::span<const RequestClass> classes;
};

/// chat, generate, summarize, long, mixed.
Result<NamedWorkload> find_workload(std::string_view name);
/// One line for reports: "mixed: 50 % chat (32-128 in, 32-128 out), ...".
std::string describe(const NamedWorkload& workload, double scale);
/// The class of a request. Of requests 10k .. 10k+9 each class has exactly its tenths, in a shuffled order, so that
/// short runs, too, have the workload's shares.
const RequestClass& class_of(const NamedWorkload& workload, std::uint64_t seed, std::uint64_t index);

/// Round(length x scale), at least 1.
std::int64_t scaled(std::int64_t length, double scale);

/// vLLM's --random-range-ratio: a number, or {"input": r, "output": r}; each in [0, 1).
struct RangeRatio {
  double input = 0, output = 0;
};
Result<RangeRatio> parse_range_ratio(std::string_view text);
/// [floor(length x (1 - ratio)), ceil(length x (1 + ratio))], at least 1: vLLM's bounds.
LengthRange around(std::int64_t length, double ratio);

/// Lengths of chats where no file gives them: independent log-normal laws cut to ShareGPT's usual filter. The
/// parameters are chosen so that the means come near those that benchmarks of ShareGPT print after the filter, 217 in
/// and 202 out.
struct ChatLaw {
  double input_median = 160, input_sigma = 1.4;
  double output_median = 120, output_sigma = 1.1;
  std::int64_t input_least = 4, input_most = 1024, output_least = 4, total_most = 2048;
  Lengths draw(Rng& rng) const;
};
std::string describe(const ChatLaw& law);

}  // namespace tokenstone::workload
