#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/check.h"
#include "kernels/kernels.h"

namespace tokenstone::kernels {

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512bf16Kernels;
extern const Kernels kAmxKernels;

namespace {

/// AMX's tiles with bfloat16: in the CPU (leaf 7) and, as the kernel gives the 8 KiB of tile data only to processes
/// that ask, permitted for this process and all its threads. Source: Linux, Documentation/arch/x86/xstate.rst; the
/// numbers from arch/x86/include/uapi/asm/prctl.h.
bool has_amx() {
  static const bool granted = [] {
    constexpr unsigned kBf16Bit = 1u << 22, kTileBit = 1u << 24;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
    if ((edx & kBf16Bit) == 0 || (edx & kTileBit) == 0) return false;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
}

}  // namespace
#endif

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512bf16:
      return "avx512bf16";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512bf16, Isa::amx})
    if (name == to_string(isa)) return isa;
  return std::nullopt;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found{Isa::scalar};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(Isa::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    found.push_back(Isa::avx512);
    if (__builtin_cpu_supports("avx512bf16")) {
      found.push_back(Isa::avx512bf16);
      if (has_amx()) found.push_back(Isa::amx);
    }
  }
#endif
  return found;
}

const Kernels& kernels_for(Isa isa) {
  const auto supported = supported_isas();
  TS_CHECK(std::find(supported.begin(), supported.end(), isa) != supported.end(), "this CPU lacks the instruction set");
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2:
      return kAvx2Kernels;
    case Isa::avx512:
      return kAvx512Kernels;
    case Isa::avx512bf16:
      return kAvx512bf16Kernels;
    case Isa::amx:
      return kAmxKernels;
#endif
    default:
      return kScalarKernels;
  }
}

const Kernels& default_kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    const char* asked = std::getenv("TOKENSTONE_ISA");
    if (asked == nullptr || *asked == '\0') return kernels_for(supported_isas().back());
    const auto isa = parse_isa(asked);
    TS_CHECK(isa.has_value(), "TOKENSTONE_ISA must be scalar, avx2, avx512, avx512bf16 or amx");
    return kernels_for(*isa);
  }();
  return chosen;
}

}  // namespace tokenstone::kernels
