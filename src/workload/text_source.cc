#include "workload/text_source.h"

#include <numeric>

#include <fmt/format.h>

namespace tokenstone::workload {
namespace {

class TextSource : public RequestSource {
 public:
  TextSource(const WorkloadOptions& options, ContentPtr content, std::vector<TextRow> rows, record::DatasetInfo info)
      : RequestSource(options, std::move(content)), rows_(std::move(rows)), info_(std::move(info)) {}
  std::uint64_t size() const override { return rows_.size(); }

 protected:
  record::DatasetInfo describe() const override { return info_; }
  void fill(record::RequestSpec& spec, std::uint64_t number) const override {
    const TextRow& row = rows_[number];
    fill_lengths(spec, number);
    if (row.ids.empty()) {
      content().fill_text(spec, row.text);
    } else {
      content().fill_ids(spec, row.ids);
    }
  }
  void fill_lengths(record::RequestSpec& spec, std::uint64_t number) const override {
    spec.class_name = info_.name;
    spec.prompt_len = rows_[number].prompt_len;
    spec.output_len = rows_[number].output_len;
  }

 private:
  std::vector<TextRow> rows_;
  record::DatasetInfo info_;
};

}  // namespace

std::unique_ptr<RequestSource> text_source(const WorkloadOptions& options, ContentPtr content,
                                           std::vector<TextRow> rows, record::DatasetInfo info) {
  if (!content->counts()) info.notes.push_back("prompt lengths are estimated at one token per 4 bytes");
  if (options.scale != 1) info.notes.push_back("--scale changes nothing here: the texts are what they are");
  return std::make_unique<TextSource>(options, std::move(content), std::move(rows), std::move(info));
}

std::vector<std::uint32_t> row_order(std::size_t count, const WorkloadOptions& options) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (options.disable_shuffle) return order;
  Rng rng(options.seeds.shuffle, streams::shuffle);
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(i) - 1))]);
  return order;
}

}  // namespace tokenstone::workload
