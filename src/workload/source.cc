#include "workload/source.h"

#include <fmt/format.h>

#include "base/check.h"
#include "workload/sources.h"

namespace tokenstone::workload {
namespace {

std::string seed_tag(std::uint64_t seed) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(seed ^ (seed >> 32)));
}

std::int32_t output_cap(const record::RequestSpec& spec) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(spec.output_len, INT32_MAX));
}

Result<DatasetKind> kind_of(const WorkloadOptions& options) {
  if (!options.dataset_name.empty()) return parse_dataset_name(options.dataset_name);
  if (!options.dataset_path.empty()) return detect_dataset(options.dataset_path);
  return DatasetKind::random;
}

Result<std::unique_ptr<RequestSource>> source_of(DatasetKind kind, const WorkloadOptions& options,
                                                 std::shared_ptr<const Content> content) {
  const bool has_path = !options.dataset_path.empty();
  if (kind == DatasetKind::random && has_path)
    return usage_error("--dataset-name random makes its prompts and takes no --dataset-path; drop one of them",
                       "--dataset-path");
  if (!has_path && (kind == DatasetKind::custom || kind == DatasetKind::azure || kind == DatasetKind::mooncake))
    return usage_error(fmt::format("--dataset-name {} needs --dataset-path FILE", to_string(kind)), "--dataset-path");
  switch (kind) {
    case DatasetKind::random:
      return random_source(options, std::move(content));
    case DatasetKind::sonnet:
      return sonnet_source(options, std::move(content));
    case DatasetKind::sharegpt:
      return has_path ? sharegpt_source(options, std::move(content)) : chat_law_source(options, std::move(content));
    case DatasetKind::custom:
      return custom_source(options, std::move(content));
    case DatasetKind::azure:
      return azure_source(options, std::move(content));
    case DatasetKind::mooncake:
      return mooncake_source(options, std::move(content));
  }
  TS_CHECK(false, "every kind of data set has a source");
}

}  // namespace

RequestSource::RequestSource(const WorkloadOptions& options, std::shared_ptr<const Content> content)
    : content_(std::move(content)),
      seeds_(options.seeds),
      num_prompts_(options.num_prompts),
      no_oversample_(options.no_oversample),
      keep_trace_times_(options.keep_trace_times) {}

std::uint64_t RequestSource::row_of(std::uint32_t index) const {
  const std::uint64_t rows = size();
  if (index < rows) return index;
  Rng rng(seeds_.shuffle, stream_of(streams::shuffle, index));
  return static_cast<std::uint64_t>(rng.uniform_int(0, static_cast<std::int64_t>(rows) - 1));
}

record::RequestSpec RequestSource::at(std::uint32_t index) const {
  record::RequestSpec spec;
  spec.index = index;
  spec.request_id = request_id(seeds_.run, index);
  fill(spec, row_of(index));
  spec.sampling.max_tokens = output_cap(spec);
  spec.sampling.seed = Rng(seeds_.sampling, stream_of(streams::sampling, index)).next_u64();
  return spec;
}

record::RequestSpec RequestSource::outline(std::uint32_t index) const {
  record::RequestSpec spec;
  spec.index = index;
  spec.request_id = request_id(seeds_.run, index);
  fill_lengths(spec, row_of(index));
  return spec;
}

record::RequestSpec RequestSource::warmup(std::uint32_t index) const {
  record::RequestSpec spec;
  spec.index = index;
  fill_lengths(spec, row_of(index));
  Rng rng(seeds_.prompts, stream_of(streams::warmup, index));
  Content::Symbols symbols;
  content_->draw(symbols, std::max<std::int64_t>(1, spec.prompt_len), rng);
  content_->fill(spec, std::move(symbols), rng);
  spec.request_id = fmt::format("warmup-{}-{}", seed_tag(seeds_.run), index);
  spec.session.clear();
  spec.sampling.max_tokens = output_cap(spec);
  spec.sampling.seed = rng.next_u64();
  return spec;
}

void RequestSource::fill_lengths(record::RequestSpec& spec, std::uint64_t row) const { fill(spec, row); }

std::uint64_t RequestSource::planned() const {
  const std::uint64_t rows = size();
  if (num_prompts_ == 0) return rows;
  const bool may_repeat = !no_oversample_ && !(has_own_times() && keep_trace_times_);
  return may_repeat ? num_prompts_ : std::min(num_prompts_, rows);
}

record::DatasetInfo RequestSource::info() const {
  record::DatasetInfo info = describe();
  info.oversampled = planned() > size();
  if (info.oversampled)
    info.notes.push_back(fmt::format(
        "{} requests from {} rows: rows repeat, chosen at random (--no-oversample forbids it)", planned(), size()));
  if (num_prompts_ > planned())
    info.notes.push_back(
        fmt::format("{} requests were asked and {} rows are there: each is sent once", num_prompts_, size()));
  if (!content_->counts()) info.notes.push_back("no tokenizer: prompt lengths are nominal, not counted");
  note_deviations(info);
  return info;
}

void RequestSource::fill_drawn(record::RequestSpec& spec, Content::Symbols symbols, Rng& rng) const {
  const std::int64_t deviation = content_->fill(spec, std::move(symbols), rng);
  if (deviation == 0) return;
  const std::lock_guard lock(mutex_);
  deviations_[spec.index] = deviation;
}

void RequestSource::note_deviations(record::DatasetInfo& info) const {
  const std::lock_guard lock(mutex_);
  if (deviations_.empty()) return;
  std::int64_t worst = 0;
  for (const auto& [index, deviation] : deviations_)
    if (std::abs(deviation) > std::abs(worst)) worst = deviation;
  info.notes.push_back(
      fmt::format("{} prompts miss the asked length, at most by {:+} tokens: no text of exactly that many "
                  "tokens was found in {} rounds",
                  deviations_.size(), worst, kFittingRounds));
}

Result<std::unique_ptr<RequestSource>> make_source(const WorkloadOptions& options, token::TokenizerPtr tokenizer) {
  TS_TRY_STATUS(options.validate());
  TS_TRY(auto content, Content::make(options.form, std::move(tokenizer)));
  if (!options.workload.empty()) return workload_source(options, std::move(content));
  TS_TRY(const DatasetKind kind, kind_of(options));
  return source_of(kind, options, std::move(content));
}

std::vector<record::RequestSpec> make_plan(const RequestSource& source, std::span<const TimeNs> arrivals) {
  std::vector<record::RequestSpec> plan;
  plan.reserve(arrivals.size());
  for (const TimeNs intended : arrivals) {
    plan.push_back(source.at(static_cast<std::uint32_t>(plan.size())));
    plan.back().intended = intended;
  }
  return plan;
}

std::string request_id(std::uint64_t seed, std::uint32_t index) {
  return fmt::format("bench-{}-{}", seed_tag(seed), index);
}

}  // namespace tokenstone::workload
