// Requests from length laws with random content: `random`, the named workloads, and `sharegpt` without a file.
#include <fmt/format.h>

#include "base/text.h"
#include "workload/lengths.h"
#include "workload/sources.h"

namespace tokenstone::workload {
namespace {

struct Planned {
  std::string_view class_name;
  Lengths lengths;
};
/// A pure function of the request's index.
using Law = std::function<Planned(std::uint64_t index)>;

class LawSource : public RequestSource {
 public:
  LawSource(const WorkloadOptions& options, ContentPtr content, std::string name, std::string law_text, Law law,
            std::int64_t prefix_len)
      : RequestSource(options, std::move(content)),
        name_(std::move(name)),
        text_(std::move(law_text)),
        law_(std::move(law)) {
    Rng rng(seeds().prompts, streams::prompts);
    this->content().draw(prefix_, prefix_len, rng);
  }
  std::uint64_t size() const override { return kUnlimited; }

 protected:
  void fill(record::RequestSpec& spec, std::uint64_t row) const override {
    const std::int64_t own = put_lengths(spec, row);
    Content::Symbols symbols = prefix_;
    Rng rng = prompt_rng(spec.index);
    content().draw(symbols, own, rng);
    fill_drawn(spec, std::move(symbols), rng);
  }
  void fill_lengths(record::RequestSpec& spec, std::uint64_t row) const override { put_lengths(spec, row); }
  record::DatasetInfo describe() const override {
    record::DatasetInfo info;
    info.name = name_;
    info.law = text_;
    info.rows = info.used = num_prompts();
    return info;
  }

 private:
  /// Gives the length of the part of the prompt that follows the shared prefix.
  std::int64_t put_lengths(record::RequestSpec& spec, std::uint64_t row) const {
    const Planned planned = law_(row);
    spec.class_name = planned.class_name;
    spec.output_len = planned.lengths.output;
    spec.prompt_len = planned.lengths.input + static_cast<std::int64_t>(prefix_.size());
    return planned.lengths.input;
  }

  std::string name_, text_;
  Law law_;
  Content::Symbols prefix_;
};

Status check_count(const WorkloadOptions& options) {
  if (options.num_prompts > 0) return {};
  return usage_error("--num-prompts must be at least 1 for requests that are made up", "--num-prompts");
}

std::string range_text(const LengthRange& range) {
  return range.lo == range.hi ? fmt::format("{}", range.lo) : fmt::format("{}-{}", range.lo, range.hi);
}

}  // namespace

SourceResult random_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY_STATUS(check_count(options));
  TS_TRY(const RangeRatio ratio, parse_range_ratio(options.random_range_ratio));
  const std::int64_t prefix = options.random_prefix_len == 0 ? 0 : scaled(options.random_prefix_len, options.scale);
  // A prompt may be its prefix alone.
  const LengthRange input = options.random_input_len == 0
                                ? LengthRange{0, 0}
                                : around(scaled(options.random_input_len, options.scale), ratio.input);
  const LengthRange output = around(scaled(options.random_output_len, options.scale), ratio.output);
  std::string text =
      fmt::format("uniform: prompt {}{}, output {}", prefix > 0 ? fmt::format("{} shared + ", prefix) : "",
                  range_text(input), range_text(output));
  Law law = [=, seed = options.seeds.lengths](std::uint64_t index) {
    Rng rng(seed, stream_of(streams::lengths, index));
    const std::int64_t in = input.draw(rng);
    return Planned{"random", {in, output.draw(rng)}};
  };
  return std::make_unique<LawSource>(options, std::move(content), "random", std::move(text), std::move(law), prefix);
}

SourceResult workload_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY_STATUS(check_count(options));
  TS_TRY(const NamedWorkload workload, find_workload(options.workload));
  Law law = [=, seed = options.seeds.lengths, scale = options.scale](std::uint64_t index) {
    const RequestClass& kind = class_of(workload, seed, index);
    Rng rng(seed, stream_of(streams::lengths, index));
    const std::int64_t in = kind.input.draw(rng), out = kind.output.draw(rng);
    return Planned{kind.name, {scaled(in, scale), scaled(out, scale)}};
  };
  return std::make_unique<LawSource>(options, std::move(content), options.workload, describe(workload, options.scale),
                                     std::move(law), 0);
}

SourceResult chat_law_source(const WorkloadOptions& options, ContentPtr content) {
  TS_TRY_STATUS(check_count(options));
  std::string text = describe(ChatLaw{});
  if (options.scale != 1) text += fmt::format("; scale {}", options.scale);
  if (options.sharegpt_output_len) text += fmt::format("; output {}", *options.sharegpt_output_len);
  Law law = [scale = options.scale, seed = options.seeds.lengths,
             fixed = options.sharegpt_output_len](std::uint64_t index) {
    Rng rng(seed, stream_of(streams::lengths, index));
    const Lengths drawn = ChatLaw{}.draw(rng);
    return Planned{"sharegpt", {scaled(drawn.input, scale), fixed.value_or(scaled(drawn.output, scale))}};
  };
  return std::make_unique<LawSource>(options, std::move(content), "sharegpt", std::move(text), std::move(law), 0);
}

}  // namespace tokenstone::workload
