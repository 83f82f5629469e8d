#include "workload/plan_hash.h"

#include <fmt/format.h>

#include "workload/random_streams.h"

namespace tokenstone::workload {

void PlanHasher::add_bytes(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 1099511628211u;
}

// Little end first, whatever the machine's order.
void PlanHasher::add_number(std::int64_t number) {
  unsigned char bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> (8 * i));
  add_bytes(bytes, sizeof bytes);
}

void PlanHasher::add_text(std::string_view text) {
  add_number(static_cast<std::int64_t>(text.size()));
  add_bytes(text.data(), text.size());
}

void PlanHasher::add(const record::RequestSpec& spec) {
  add_text(spec.request_id);
  add_text(spec.class_name);
  add_text(spec.session);
  add_number(spec.intended);
  add_number(spec.output_len);
  add_text(spec.extra_body);
  add_number(static_cast<std::int64_t>(spec.prompt.index()));
  if (const auto* text = std::get_if<std::string>(&spec.prompt)) add_text(*text);
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&spec.prompt)) {
    add_number(static_cast<std::int64_t>(ids->size()));
    for (const TokenId id : *ids) add_number(id);
  }
  if (const auto* messages = std::get_if<std::vector<record::ChatMessage>>(&spec.prompt)) {
    add_number(static_cast<std::int64_t>(messages->size()));
    for (const record::ChatMessage& message : *messages) {
      add_text(message.role);
      add_text(message.content);
    }
  }
}

// FNV's low bits depend on few input bits; the finaliser spreads them, so that a prefix of the digits tells plans apart
// too.
std::uint64_t PlanHasher::value() const { return mixed_seed(state_, 0); }

std::uint64_t plan_hash(std::span<const record::RequestSpec> plan) {
  PlanHasher hasher;
  for (const record::RequestSpec& spec : plan) hasher.add(spec);
  return hasher.value();
}

std::string plan_hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace tokenstone::workload
