// The kernel table for Isa::avx2; see CMakeLists.txt for how this file is compiled.
#if defined(__x86_64__)
#include "kernels/lanes_avx2.h"

#include "kernels/attention_impl.h"

namespace tokenstone::kernels {

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = make_table<Avx2Lanes>(Isa::avx2);

}  // namespace tokenstone::kernels
#endif
