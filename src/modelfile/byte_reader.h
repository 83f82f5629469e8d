// A cursor over bytes that cannot leave them: every read says whether it was possible.
//
// Ownership: a view; the bytes outlive it. Threads: one at a time. Units: bytes, little-endian.
// Failure: a read beyond the end gives nothing and leaves the cursor where it was.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace tokenstone::modelfile {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  std::optional<T> number() {
    static_assert(std::endian::native == std::endian::little, "model files are little-endian and read as they stand");
    if (remaining() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  /// The length comes from the file and may be anything.
  std::optional<std::string_view> text(std::uint64_t length) {
    if (length > remaining()) return std::nullopt;
    const std::string_view found(reinterpret_cast<const char*>(bytes_.data()) + position_,
                                 static_cast<std::size_t>(length));
    position_ += found.size();
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace tokenstone::modelfile
