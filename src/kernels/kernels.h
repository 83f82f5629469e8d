// The CPU kernels, one table per instruction set, chosen at run time.
//
// What: packed GEMM, RMSNorm, RoPE, paged attention, elementwise rows, exponentials for sampling; for float and
// bfloat16 activations and weights. Accumulation is in float always. Contract: for one table the result of an output
// element depends on its own inputs alone: not on the number of rows, the panel range, the block size, or which thread
// calls. Between instruction sets results differ by rounding. Ownership: every pointer is borrowed for the call.
// Threads: any; calls that write different ranges may run at once. Units: strides and counts are elements, not bytes.
// Failure: none; preconditions are stated at each call.
//
// Layouts (T is float or Bf16; P = elements of T in 4 bytes: 1 or 2):
//   packed matrix [N/16][K/P][16][P]: panels of 16 output columns; one 64-byte row feeds one multiply-add for 16
//   outputs. KV block      [kv head][ K tile | V tile ], K tile [block/16][head_dim/P][16][P], V tile [block][head_dim
//   rounded up to 16].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/bf16.h"

namespace tokenstone::kernels {

enum class Isa { scalar, avx2, avx512, avx512bf16, amx };
std::string_view to_string(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

inline constexpr std::size_t kPanel = 16;         ///< output columns of a panel
inline constexpr std::size_t kTokenGroup = 16;    ///< tokens of a K group; block sizes are multiples of it
inline constexpr std::size_t kSoftmaxTile = 256;  ///< tokens whose scores share one maximum
inline constexpr std::size_t kMaxQueries = 4;     ///< query vectors that share one pass over K and V

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// What becomes of a tile's sums.
enum class Epilogue {
  store,     ///< out[row][column] = sum
  add,       ///< out[row][column] += sum (the residual stream)
  silu_mul,  ///< panels 2j, 2j+1 hold gate and up: act[row][16j + lane] = silu(gate) * up, as T
};

/// out[M x 16*(panel_end-panel_begin)] = a[M x K] * w. Preconditions: K a multiple of P; for silu_mul both panel bounds
/// even.
template <class T>
struct GemmCall {
  const T* a = nullptr;  ///< rows of activations
  std::size_t lda = 0;   ///< their stride
  const T* w = nullptr;  ///< packed matrix, from panel 0; 64-byte aligned
  std::size_t rows = 0;  ///< M
  std::size_t k = 0;
  std::size_t panel_begin = 0, panel_end = 0;
  Epilogue epilogue = Epilogue::store;
  float* out = nullptr;  ///< store, add: column 0 of row 0; rows hold whole panels
  T* act = nullptr;      ///< silu_mul: likewise
  std::size_t ldo = 0;   ///< stride of out or act
};

/// Where a layer's K and V lie.
template <class T>
struct KvView {
  T* layer = nullptr;  ///< block 0 of this layer
  std::size_t num_kv_heads = 0, head_dim = 0, block_size = 0;
  std::size_t padded_dim() const { return round_up(head_dim, kPanel); }
  std::size_t head_stride() const { return block_size * (head_dim + padded_dim()); }
  std::size_t block_stride() const { return num_kv_heads * head_stride(); }
};

/// Up to kMaxQueries query vectors of one sequence against one kv head. Query i sees the tokens [0, context[i]).
template <class T>
struct AttentionCall {
  KvView<T> kv;
  const std::uint32_t* blocks = nullptr;  ///< block table of the sequence
  std::size_t kv_head = 0;
  std::size_t num_queries = 0;            ///< 1 .. kMaxQueries
  const T* query[kMaxQueries] = {};       ///< head_dim elements each, rotated, not scaled
  T* out[kMaxQueries] = {};               ///< head_dim elements each
  std::size_t context[kMaxQueries] = {};  ///< at least 1
  float scale = 1;
};

/// One token's K and V into its slot.
template <class T>
struct StoreCall {
  KvView<T> kv;
  std::uint32_t block = 0;
  std::size_t slot = 0;  ///< token's place in the block
  std::size_t kv_head = 0;
  const float* key = nullptr;  ///< head_dim elements, not rotated yet
  const float* value = nullptr;
  const float* cos = nullptr;  ///< head_dim / 2 each, of the token's position
  const float* sin = nullptr;
};

template <class T>
struct TypedKernels {
  void (*gemm)(const GemmCall<T>&);
  void (*attention)(const AttentionCall<T>&);
  /// Rotates the key (element i with i + head_dim/2) and stores both.
  void (*store_kv)(const StoreCall<T>&);
  /// Rotates one head's query.
  void (*rope_query)(const float* query, const float* cos, const float* sin, std::size_t head_dim, T* out);
  /// out = x / sqrt(mean(x^2) + eps) * weight
  void (*rms_norm)(const float* x, const float* weight, float eps, std::size_t n, T* out);
};

struct Kernels {
  Isa isa;
  TypedKernels<float> f32;
  TypedKernels<Bf16> bf16;
  /// Lowest index of the largest element; n >= 1. NaN is never chosen unless all are.
  std::size_t (*argmax)(const float* x, std::size_t n);
  /// out = exp((x - shift) * scale); returns the sum, added in a fixed order.
  double (*exp_sum)(const float* x, std::size_t n, float shift, float scale, float* out);
  template <class T>
  const TypedKernels<T>& typed() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return bf16;
    }
  }
};

/// What this CPU can run, scalar first, best last. CPUs other than x86-64 run the scalar table, which their compiler
/// vectorises as it can. The first call asks the operating system for AMX's registers, for the whole process; amx is
/// left out where it refuses.
std::vector<Isa> supported_isas();
/// Precondition: supported.
const Kernels& kernels_for(Isa isa);
/// The best table, or the one that TOKENSTONE_ISA names; a name that is unknown or not supported here stops the
/// program.
const Kernels& default_kernels();

}  // namespace tokenstone::kernels
