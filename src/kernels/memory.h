// Large zeroed memory for weights and KV: 2 MiB-aligned, on huge pages where the system grants them (its default is
// madvise). Ownership: the buffer owns its mapping. Threads: as a vector. Units: bytes; elements in `as`. Pages are
// taken when first written, so an untouched KV pool costs address space only. Failure: out of address space stops.
#pragma once

#include <cstddef>
#include <utility>

namespace tokenstone::kernels {

class HugeBuffer {
 public:
  HugeBuffer() = default;
  explicit HugeBuffer(std::size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept { swap(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    HugeBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }

  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() {
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }

 private:
  void swap(HugeBuffer& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tokenstone::kernels
