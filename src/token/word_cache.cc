#include "token/word_cache.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

namespace tokenstone::token {
namespace {

constexpr std::size_t kSlots = 1 << 13;
constexpr std::size_t kMostBytes = 23;
constexpr std::size_t kMostTokens = 6;

struct Slot {
  WordCache::Owner owner = 0;
  std::array<TokenId, kMostTokens> ids;
  std::array<char, kMostBytes> word;
  std::uint8_t length = 0;
  std::uint8_t count = 0;
};

Slot& slot_of(WordCache::Owner owner, std::string_view word) {
  thread_local const std::unique_ptr<Slot[]> table = std::make_unique<Slot[]>(kSlots);
  return table[(std::hash<std::string_view>{}(word) + owner) % kSlots];
}

}  // namespace

WordCache::Owner WordCache::new_owner() {
  static std::atomic<Owner> last = 0;
  return ++last;
}

bool WordCache::find(Owner owner, std::string_view word, std::vector<TokenId>& ids) {
  if (word.size() > kMostBytes) return false;
  const Slot& slot = slot_of(owner, word);
  if (slot.owner != owner || std::string_view(slot.word.data(), slot.length) != word) return false;
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
  return true;
}

void WordCache::keep(Owner owner, std::string_view word, std::span<const TokenId> ids) {
  if (word.size() > kMostBytes || ids.size() > kMostTokens) return;
  Slot& slot = slot_of(owner, word);
  slot.owner = owner;
  slot.length = static_cast<std::uint8_t>(word.size());
  slot.count = static_cast<std::uint8_t>(ids.size());
  std::memcpy(slot.word.data(), word.data(), word.size());
  std::ranges::copy(ids, slot.ids.begin());
}

}  // namespace tokenstone::token
