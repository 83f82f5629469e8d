#include "workload/lengths.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "workload/random_streams.h"

namespace tokenstone::workload {
namespace {

constexpr LengthRange kShort{32, 128}, kLongPrompt{4096, 16000}, kLongOutput{512, 2048};

constexpr RequestClass kChat[] = {{"chat", kShort, kShort, 10}};
constexpr RequestClass kGenerate[] = {{"generate", kShort, kLongOutput, 10}};
constexpr RequestClass kSummarize[] = {{"summarize", kLongPrompt, kShort, 10}};
constexpr RequestClass kLong[] = {{"long", kLongPrompt, kLongOutput, 10}};
constexpr RequestClass kMixed[] = {{"chat", kShort, kShort, 5},
                                   {"generate", kShort, kLongOutput, 2},
                                   {"summarize", kLongPrompt, kShort, 2},
                                   {"long", kLongPrompt, kLongOutput, 1}};

const NamedWorkload kWorkloads[] = {
    {"chat", kChat}, {"generate", kGenerate}, {"summarize", kSummarize}, {"long", kLong}, {"mixed", kMixed}};

std::optional<double> ratio_of(const nlohmann::json& value) {
  if (!value.is_number()) return std::nullopt;
  const double ratio = value.get<double>();
  return ratio >= 0 && ratio < 1 ? std::optional(ratio) : std::nullopt;
}

std::string describe(const LengthRange& input, const LengthRange& output, double scale) {
  return fmt::format("{}-{} in, {}-{} out", scaled(input.lo, scale), scaled(input.hi, scale), scaled(output.lo, scale),
                     scaled(output.hi, scale));
}

}  // namespace

Result<NamedWorkload> find_workload(std::string_view name) {
  std::vector<std::string> names;
  for (const NamedWorkload& workload : kWorkloads) {
    if (workload.name == name) return workload;
    names.emplace_back(workload.name);
  }
  const auto nearest = nearest_name(name, names);
  return usage_error(fmt::format("--workload expects one of {}, found \"{}\"{}", join(names, ", "), name,
                                 nearest ? "; did you mean " + *nearest + "?" : ""),
                     "--workload");
}

std::string describe(const NamedWorkload& workload, double scale) {
  std::vector<std::string> parts;
  for (const RequestClass& c : workload.classes)
    parts.push_back(fmt::format("{} % {} ({})", c.tenths * 10, c.name, describe(c.input, c.output, scale)));
  return fmt::format("{}: {}; uniform lengths{}", workload.name, join(parts, ", "),
                     scale == 1 ? "" : fmt::format(", scale {}", scale));
}

const RequestClass& class_of(const NamedWorkload& workload, std::uint64_t seed, std::uint64_t index) {
  std::array<std::uint8_t, 10> slots{};
  std::size_t slot = 0;
  for (std::size_t c = 0; c < workload.classes.size(); ++c)
    for (int i = 0; i < workload.classes[c].tenths; ++i) slots[slot++] = static_cast<std::uint8_t>(c);
  Rng rng(seed, stream_of(streams::classes, index / 10));
  for (std::size_t i = slots.size() - 1; i > 0; --i)
    std::swap(slots[i], slots[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(i)))]);
  return workload.classes[slots[index % 10]];
}

std::int64_t scaled(std::int64_t length, double scale) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
}

Result<RangeRatio> parse_range_ratio(std::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  std::optional<double> input = ratio_of(json), output = input;
  if (json.is_object() && json.size() == 2 && json.contains("input") && json.contains("output")) {
    input = ratio_of(json["input"]);
    output = ratio_of(json["output"]);
  }
  if (input && output) return RangeRatio{*input, *output};
  return usage_error(
      fmt::format("--random-range-ratio expects a number in [0, 1) or {{\"input\": r, \"output\": r}}, found {}", text),
      "--random-range-ratio");
}

LengthRange around(std::int64_t length, double ratio) {
  const double size = static_cast<double>(length);
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(size * (1 - ratio)))),
          std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(size * (1 + ratio))))};
}

Lengths ChatLaw::draw(Rng& rng) const {
  Lengths drawn;
  // About nine draws in ten pass the filter; a law that hardly ever does must not loop for ever.
  for (int attempt = 0; attempt < 100; ++attempt) {
    drawn.input = std::llround(input_median * std::exp(input_sigma * rng.normal()));
    drawn.output = std::llround(output_median * std::exp(output_sigma * rng.normal()));
    if (drawn.input >= input_least && drawn.input <= input_most && drawn.output >= output_least &&
        drawn.input + drawn.output <= total_most)
      return drawn;
  }
  return {std::clamp(drawn.input, input_least, input_most),
          std::clamp(drawn.output, output_least, total_most - input_most)};
}

std::string describe(const ChatLaw& law) {
  return fmt::format(
      "sharegpt-law: lognormal, prompt median {} sigma {}, output median {} sigma {}; prompt {}-{}, output >= {}, "
      "total <= {}; random content",
      law.input_median, law.input_sigma, law.output_median, law.output_sigma, law.input_least, law.input_most,
      law.output_least, law.total_most);
}

}  // namespace tokenstone::workload
