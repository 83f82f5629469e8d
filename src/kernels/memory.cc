#include "kernels/memory.h"

#include <sys/mman.h>

#include "base/check.h"

namespace tokenstone::kernels {
namespace {

constexpr std::size_t kHugePage = 2u << 20;

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  mapped_bytes_ = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TS_CHECK(mapping_ != MAP_FAILED, "the system refused the memory for weights or KV");
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
  // Advice only: without huge pages everything works, slower.
  (void)madvise(data_, mapped_bytes_ - kHugePage, MADV_HUGEPAGE);
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace tokenstone::kernels
