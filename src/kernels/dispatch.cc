#include <cstdlib>

#include "base/check.h"
#include "kernels/kernels.h"

namespace tokenstone::kernels {

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512bf16Kernels;
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
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512bf16})
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
    if (__builtin_cpu_supports("avx512bf16")) found.push_back(Isa::avx512bf16);
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
    TS_CHECK(isa.has_value(), "TOKENSTONE_ISA must be scalar, avx2, avx512 or avx512bf16");
    return kernels_for(*isa);
  }();
  return chosen;
}

}  // namespace tokenstone::kernels
