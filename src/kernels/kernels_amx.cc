// The kernel table for Isa::amx: that of avx512bf16, with the bfloat16 GEMM by AMX tiles. See CMakeLists.txt for how
// this file is compiled and dispatch.cc for the permission that tiles need.
//
// A tile register holds 16 rows of 64 bytes. One TDPBF16PS multiplies an A tile (16 rows x 32 activations) with a B
// tile (16 pairs of inputs x 16 outputs, which is 1 KiB of a packed panel as it lies in memory) onto a C tile (16 rows
// x 16 sums). Each C tile runs through K in order, 32 at a time; how many rows and panels go together changes nothing
// about a row's sums, and AMX is used for all row counts of a matrix or, where K is not a multiple of 32, for none.
// Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX.
#if defined(__x86_64__)
#include "kernels/lanes_avx512.h"

#include "kernels/attention_impl.h"

namespace tokenstone::kernels {
namespace {

using L = Avx512Lanes;

constexpr std::size_t kTileRows = 16;       ///< rows of a tile
constexpr std::size_t kTileDepth = 32;      ///< inputs of one step
constexpr std::size_t kTileElements = 512;  ///< Bf16 of a full tile
/// Weights that stay in the second cache (2 MiB on the CPUs with AMX) beside the rows that go by.
constexpr std::size_t kNearBytes = 3u << 18;

/// What LDTILECFG reads.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// Rows that go through the panels together: up to 16 with four panels at a time, or up to 32 with two.
struct RowBlock {
  std::size_t upper, lower;  ///< rows of the first and second A tile
};

/// One A tile: C in 0..3, A in 4, B in 5..7. Two: C in 0, 1 (upper) and 2, 3 (lower), A in 4 and 5, B in 6 and 7.
void configure_tiles(RowBlock block) {
  TileConfig config;
  const auto set = [&](int tile, std::size_t rows) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = static_cast<std::uint8_t>(rows);
  };
  const bool two = block.lower > 0;
  for (const int tile : {0, 1, 4}) set(tile, block.upper);
  for (const int tile : {2, 3}) set(tile, two ? block.lower : block.upper);
  set(5, two ? block.lower : kTileRows);
  for (const int tile : {6, 7}) set(tile, kTileRows);
  __asm__ volatile("" : : "r"(&config) : "memory");  // GCC 12 takes the intrinsic to read eight bytes only
  _tile_loadconfig(&config);
}

/// `rows` rows of the sums of `P` panels; sums[p] is a stored C tile.
template <int P>
void finish_rows(const GemmCall<Bf16>& call, std::size_t row, std::size_t rows, std::size_t panel,
                 const float (*sums)[kTileRows * kPanel]) {
  for (std::size_t r = 0; r < rows; ++r) {
    if (call.epilogue == Epilogue::add) {
      for (int p = 0; p < P; ++p) {
        float* out = call.out + (row + r) * call.ldo + (panel + p) * kPanel;
        L::store(out, L::add(L::load(out), L::load(sums[p] + r * kPanel)));
      }
    } else {
      for (int p = 0; p + 1 < P; p += 2)
        L::store(call.act + (row + r) * call.ldo + (panel + p) / 2 * kPanel,
                 L::mul(silu_lanes<L>(L::load(sums[p] + r * kPanel)), L::load(sums[p + 1] + r * kPanel)));
    }
  }
}

/// Tile loads keep few reads of the memory under way at once, so with few rows, where each weight is used once, the
/// weights are asked for some steps ahead. The P panels lie one after the other: past the end of one the next P begin
/// P - 1 panels on.
template <int P>
void fetch_ahead(const Bf16* b, std::size_t depth_left, std::size_t panel_stride) {
  constexpr std::size_t kSteps = 4;
  const Bf16* ahead = b + kSteps * kTileElements;
  if (depth_left <= kSteps * kTileDepth) ahead += (P - 1) * panel_stride;
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
    for (std::size_t line = 0; line < kTileElements; line += kTileElements / 16)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + p * panel_stride + line), _MM_HINT_T0);
}

/// One A tile by `P` panels.
template <int P>
void multiply_one(const GemmCall<Bf16>& call, std::size_t row, std::size_t rows, std::size_t panel) {
  const std::size_t panel_stride = call.k * kPanel, lda = call.lda * sizeof(Bf16);
  const Bf16* a = call.a + row * call.lda;
  const Bf16* b = call.w + panel * panel_stride;
  _tile_zero(0);
  if constexpr (P > 1) _tile_zero(1);
  if constexpr (P > 2) _tile_zero(2);
  if constexpr (P > 2) _tile_zero(3);
  for (std::size_t k = 0; k < call.k; k += kTileDepth, a += kTileDepth, b += kTileElements) {
    fetch_ahead<P>(b, call.k - k, panel_stride);
    _tile_loadd(4, a, lda);
    _tile_loadd(5, b, 64);
    _tile_dpbf16ps(0, 4, 5);
    if constexpr (P > 1) {
      _tile_loadd(6, b + panel_stride, 64);
      _tile_dpbf16ps(1, 4, 6);
    }
    if constexpr (P > 2) {
      _tile_loadd(7, b + 2 * panel_stride, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_loadd(5, b + 3 * panel_stride, 64);
      _tile_dpbf16ps(3, 4, 5);
    }
  }
  const bool direct = call.epilogue == Epilogue::store;
  alignas(64) float scratch[P][kTileRows * kPanel];
  float* out = direct ? call.out + row * call.ldo + panel * kPanel : scratch[0];
  const std::size_t ldo = direct ? call.ldo * sizeof(float) : 64, step = direct ? kPanel : kTileRows * kPanel;
  _tile_stored(0, out, ldo);
  if constexpr (P > 1) _tile_stored(1, out + step, ldo);
  if constexpr (P > 2) _tile_stored(2, out + 2 * step, ldo);
  if constexpr (P > 2) _tile_stored(3, out + 3 * step, ldo);
  if (!direct) finish_rows<P>(call, row, rows, panel, scratch);
}

/// Two A tiles by `P` panels.
template <int P>
void multiply_two(const GemmCall<Bf16>& call, std::size_t row, RowBlock block, std::size_t panel) {
  const std::size_t panel_stride = call.k * kPanel, lda = call.lda * sizeof(Bf16);
  const Bf16* a = call.a + row * call.lda;
  const Bf16* lower = a + kTileRows * call.lda;
  const Bf16* b = call.w + panel * panel_stride;
  _tile_zero(0);
  _tile_zero(2);
  if constexpr (P > 1) _tile_zero(1);
  if constexpr (P > 1) _tile_zero(3);
  for (std::size_t k = 0; k < call.k; k += kTileDepth, b += kTileElements) {
    _tile_loadd(4, a + k, lda);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, lower + k, lda);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (P > 1) {
      _tile_loadd(7, b + panel_stride, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  const bool direct = call.epilogue == Epilogue::store;
  alignas(64) float scratch[2 * P][kTileRows * kPanel];
  float* upper_out = direct ? call.out + row * call.ldo + panel * kPanel : scratch[0];
  float* lower_out = direct ? upper_out + kTileRows * call.ldo : scratch[P];
  const std::size_t ldo = direct ? call.ldo * sizeof(float) : 64, step = direct ? kPanel : kTileRows * kPanel;
  _tile_stored(0, upper_out, ldo);
  _tile_stored(2, lower_out, ldo);
  if constexpr (P > 1) _tile_stored(1, upper_out + step, ldo);
  if constexpr (P > 1) _tile_stored(3, lower_out + step, ldo);
  if (direct) return;
  finish_rows<P>(call, row, block.upper, panel, scratch);
  finish_rows<P>(call, row + kTileRows, block.lower, panel, scratch + P);
}

/// Rows [row, end), in blocks of the shape that the tiles are configured for, by panels [panel, panel_end).
void multiply_rows(const GemmCall<Bf16>& call, std::size_t row, std::size_t end, RowBlock block, std::size_t panel,
                   std::size_t panel_end) {
  if (block.lower == 0) {
    for (; panel + 4 <= panel_end; panel += 4) multiply_one<4>(call, row, block.upper, panel);
    for (; panel + 2 <= panel_end; panel += 2) multiply_one<2>(call, row, block.upper, panel);
    for (; panel < panel_end; ++panel) multiply_one<1>(call, row, block.upper, panel);
    return;
  }
  for (; row < end; row += 2 * kTileRows) {
    std::size_t p = panel;
    for (; p + 2 <= panel_end; p += 2) multiply_two<2>(call, row, block, p);
    for (; p < panel_end; ++p) multiply_two<1>(call, row, block, p);
  }
}

/// Whole blocks of 32 rows first, then what is left, for as many panels as stay in the near cache.
void gemm_tiles(const GemmCall<Bf16>& call) {
  if (call.k % kTileDepth != 0) return gemm<L, Bf16>(call);
  const std::size_t rest = call.rows % (2 * kTileRows), whole = call.rows - rest;
  const RowBlock last{rest < kTileRows ? rest : kTileRows, rest > kTileRows ? rest - kTileRows : 0};
  const std::size_t near = kNearBytes / (call.k * kPanel * sizeof(Bf16)) / 4 * 4;
  const std::size_t chunk = near > 4 ? near : 4;
  for (std::size_t panel = call.panel_begin; panel < call.panel_end; panel += chunk) {
    const std::size_t end = call.panel_end - panel < chunk ? call.panel_end : panel + chunk;
    if (whole > 0) {
      configure_tiles({kTileRows, kTileRows});
      multiply_rows(call, 0, whole, {kTileRows, kTileRows}, panel, end);
    }
    if (rest > 0) {
      configure_tiles(last);
      multiply_rows(call, whole, call.rows, last, panel, end);
    }
  }
  _tile_release();
}

constexpr Kernels make_amx_table() {
  Kernels table = make_table<L>(Isa::amx);
  table.bf16.gemm = gemm_tiles;
  return table;
}

}  // namespace

extern const Kernels kAmxKernels;
const Kernels kAmxKernels = make_amx_table();

}  // namespace tokenstone::kernels
#endif
