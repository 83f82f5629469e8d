// A 64-bit hash over what was planned: two runs with the same hash sent the same requests.
//
// Ownership: plain values. Threads: one hasher at a time. Units: none. Failure: none.
// FNV-1a over ids, classes, instants, prompts, lengths and extra bodies, each with its length in front.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "record/request_spec.h"

namespace tokenstone::workload {

class PlanHasher {
 public:
  void add(const record::RequestSpec& spec);
  std::uint64_t value() const;

 private:
  void add_bytes(const void* data, std::size_t size);
  void add_number(std::int64_t number);
  void add_text(std::string_view text);

  std::uint64_t state_ = 14695981039346656037u;
};

std::uint64_t plan_hash(std::span<const record::RequestSpec> plan);
/// 16 hex digits.
std::string plan_hash_text(std::uint64_t hash);

}  // namespace tokenstone::workload
