// The kernel table for Isa::avx512; see CMakeLists.txt for how this file is compiled.
#if defined(__x86_64__)
#include "kernels/lanes_avx512.h"

#include "kernels/attention_impl.h"

namespace tokenstone::kernels {

extern const Kernels kAvx512Kernels;
const Kernels kAvx512Kernels = make_table<Avx512Lanes>(Isa::avx512);

}  // namespace tokenstone::kernels
#endif
