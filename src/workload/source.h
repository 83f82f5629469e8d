// Where requests come from: a data set, a trace or a length law, behind one interface.
//
// What: a RequestSource gives request number i as a pure function of i and the seeds, for every i (rows repeat beyond
// the last one, seeded, with ids of their own). Ownership: a source owns its rows and shares the tokenizer. Threads:
// const members from any thread at once. Units: tokens; instants in ns from the trace's first row. Failure: make_source
// gives one line for a person (usage).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "record/request_spec.h"
#include "record/run.h"
#include "token/tokenizer.h"
#include "workload/content.h"
#include "workload/options.h"

namespace tokenstone::workload {

/// size() of a law: no two requests are the same row.
inline constexpr std::uint64_t kUnlimited = UINT64_MAX;

class RequestSource {
 public:
  RequestSource(const WorkloadOptions& options, std::shared_ptr<const Content> content);
  virtual ~RequestSource() = default;
  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;

  /// Request number `index`, `intended` not set.
  record::RequestSpec at(std::uint32_t index) const;
  /// The same without its prompt, at little cost: for checks of lengths before the run. Lengths are the asked ones.
  record::RequestSpec outline(std::uint32_t index) const;
  /// A request with the lengths of number `index` and text that no measured request has: a warm-up must not fill the
  /// prefix cache with what is measured afterwards.
  record::RequestSpec warmup(std::uint32_t index) const;
  /// Distinct rows; kUnlimited for laws.
  virtual std::uint64_t size() const = 0;
  /// Requests of a run by count: --num-prompts, or fewer where rows may not be repeated.
  std::uint64_t planned() const;
  /// Instants of the rows, ascending from zero; empty where there are none.
  virtual std::span<const TimeNs> arrivals() const { return {}; }
  /// What happened to the rows; also how many of the prompts made so far miss the asked length.
  record::DatasetInfo info() const;

 protected:
  /// Sets class, prompt, lengths and session. `row` is below size().
  virtual void fill(record::RequestSpec& spec, std::uint64_t row) const = 0;
  /// Prompt and output lengths of a row, without making the prompt.
  virtual void fill_lengths(record::RequestSpec& spec, std::uint64_t row) const;
  virtual record::DatasetInfo describe() const = 0;
  /// Rows of traces are not repeated while the trace's own times are kept.
  virtual bool has_own_times() const { return false; }

  /// Puts drawn symbols as the prompt of a measured request, and keeps account of those that miss the asked length.
  void fill_drawn(record::RequestSpec& spec, Content::Symbols symbols, Rng& rng) const;

  const Content& content() const { return *content_; }
  const Seeds& seeds() const { return seeds_; }
  std::uint64_t num_prompts() const { return num_prompts_; }
  Rng prompt_rng(std::uint32_t index) const { return Rng(seeds_.prompts, stream_of(streams::prompts, index)); }

 private:
  std::uint64_t row_of(std::uint32_t index) const;
  void note_deviations(record::DatasetInfo& info) const;

  std::shared_ptr<const Content> content_;
  Seeds seeds_;
  std::uint64_t num_prompts_;
  bool no_oversample_, keep_trace_times_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint32_t, std::int64_t> deviations_;  ///< request index -> made minus asked tokens
};

/// Reads the data set, or takes the law, that the options name. Without a tokenizer prompts are text and their lengths
/// nominal.
Result<std::unique_ptr<RequestSource>> make_source(const WorkloadOptions& options, token::TokenizerPtr tokenizer);

/// One request for each instant (kUnknownTime in a closed loop).
std::vector<record::RequestSpec> make_plan(const RequestSource& source, std::span<const TimeNs> arrivals);

/// "bench-<8 hex digits of the seed>-<index>".
std::string request_id(std::uint64_t seed, std::uint32_t index);

}  // namespace tokenstone::workload
