// The kernel table for Isa::scalar; see CMakeLists.txt for how this file is compiled.
#include "kernels/lanes_scalar.h"

#include "kernels/attention_impl.h"

namespace tokenstone::kernels {

extern const Kernels kScalarKernels;
const Kernels kScalarKernels = make_table<ScalarLanes>(Isa::scalar);

}  // namespace tokenstone::kernels
