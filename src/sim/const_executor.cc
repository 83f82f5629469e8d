#include "sim/const_executor.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace tokenstone::sim {
namespace {

/// splitmix64's finalizer (Steele, Lea, Flood 2014): every input bit changes every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

Result<TimeNs> cost_from_us(double us, std::string_view flag) {
  constexpr double most_us = 1e9;  // a thousand seconds; larger sums could leave the clock's range
  if (!std::isfinite(us) || us < 0 || us > most_us)
    return usage_error(fmt::format("--{} must be from 0 to {:.0f} microseconds; it is {}", flag, most_us, us),
                       std::string(flag));
  return static_cast<TimeNs>(std::llround(us * 1e3));
}

}  // namespace

ConstExecutor::ConstExecutor(ConstCosts costs, std::uint32_t vocab_size, std::vector<TokenId> never)
    : costs_(costs), vocab_size_(vocab_size), never_(std::move(never)) {
  TS_CHECK(vocab_size_ > never_.size(), "some token must be left to choose");
}

const sched::StepResult& ConstExecutor::execute(const sched::StepPlan& plan, TimeNs) {
  result_.tokens.clear();
  for (const sched::PlanRow& row : plan.rows)
    result_.tokens.push_back(row.samples ? token_at(row.seq, row.first_position + row.tokens.size()) : kNoToken);
  result_.duration_ns = costs_.prefill_ns_per_token * static_cast<TimeNs>(plan.num_prefill_tokens) +
                        (plan.num_decode_sequences > 0 ? costs_.decode_ns : 0);
  result_.forward_ns = result_.duration_ns;
  return result_;
}

TokenId ConstExecutor::token_at(SeqId seq, std::uint64_t position) const {
  auto token = static_cast<TokenId>(mix(mix(seq.value) + position) % vocab_size_);
  while (std::ranges::find(never_, token) != never_.end())
    token = static_cast<TokenId>((static_cast<std::uint32_t>(token) + 1) % vocab_size_);
  return token;
}

Result<ConstCosts> const_costs_from_us(double prefill_us_per_token, double decode_us) {
  TS_TRY(const TimeNs prefill, cost_from_us(prefill_us_per_token, "sim-prefill-us-per-token"));
  TS_TRY(const TimeNs decode, cost_from_us(decode_us, "sim-decode-us"));
  return ConstCosts{.prefill_ns_per_token = prefill, .decode_ns = decode};
}

Result<ConstEngine> make_const_engine(Loop& loop, const sched::SchedulerConfig& config, ConstCosts costs,
                                      record::StepSink* steps, std::uint32_t vocab_size) {
  TS_TRY_STATUS(sched::validate(config));
  ConstEngine made;
  made.scheduler = std::make_unique<sched::Scheduler>(config);
  made.executor = std::make_unique<ConstExecutor>(costs, vocab_size, config.eos_token_ids);
  made.engine = std::make_unique<runtime::EngineLoop>(loop, *made.scheduler, *made.executor, nullptr, steps);
  return made;
}

}  // namespace tokenstone::sim
