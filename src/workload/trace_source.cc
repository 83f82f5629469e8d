#include "workload/trace_source.h"

#include <fmt/format.h>

namespace tokenstone::workload {
namespace {

constexpr std::uint64_t kBlockPurpose =
    1;  // blocks draw from a seed of their own: their streams are the hashes themselves

class TraceSource : public RequestSource {
 public:
  TraceSource(const WorkloadOptions& options, ContentPtr content, Trace trace, OrderedTrace order)
      : RequestSource(options, std::move(content)), trace_(std::move(trace)), order_(std::move(order)) {}
  std::uint64_t size() const override { return trace_.rows.size(); }
  std::span<const TimeNs> arrivals() const override { return order_.times; }

 protected:
  bool has_own_times() const override { return true; }
  record::DatasetInfo describe() const override { return trace_.info; }

  void fill(record::RequestSpec& spec, std::uint64_t number) const override {
    fill_lengths(spec, number);
    const TraceRow& row = trace_.rows[order_.order[number]];
    Content::Symbols symbols;
    std::int64_t left = row.input;
    for (const std::uint64_t hash : row.hashes) {
      const std::int64_t length = std::min(trace_.block, left);
      Rng block(mixed_seed(seeds().prompts, kBlockPurpose), hash);
      content().draw(symbols, length, block);
      left -= length;
    }
    Rng rng = prompt_rng(spec.index);
    content().draw(symbols, left, rng);
    fill_drawn(spec, std::move(symbols), rng);
  }

  void fill_lengths(record::RequestSpec& spec, std::uint64_t number) const override {
    const TraceRow& row = trace_.rows[order_.order[number]];
    spec.class_name = trace_.name;
    spec.prompt_len = row.input;
    spec.output_len = row.output;
  }

 private:
  Trace trace_;
  OrderedTrace order_;
};

}  // namespace

std::unique_ptr<RequestSource> trace_source(const WorkloadOptions& options, ContentPtr content, Trace trace) {
  OrderedTrace order = order_trace(trace.times);
  if (order.unsorted > 0)
    trace.info.notes.push_back(fmt::format("{} rows went back in time: rows were put in order", order.unsorted));
  trace.info.notes.push_back(fmt::format("the trace's own times last {}", span_text(order.times.back())));
  if (options.scale != 1) trace.info.notes.push_back(fmt::format("lengths scaled by {}", options.scale));
  return std::make_unique<TraceSource>(options, std::move(content), std::move(trace), std::move(order));
}

std::string span_text(TimeNs span) {
  const double seconds = to_seconds(span);
  return seconds < 120 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

}  // namespace tokenstone::workload
