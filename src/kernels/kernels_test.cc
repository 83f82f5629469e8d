// Every instruction set that this CPU has against plain loops, and each against itself for every batch, block size and
// split.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cmath>

#include "base/rng.h"
#include "kernels/packed_matrix.h"

namespace tokenstone::kernels {
namespace {

std::vector<float> random_floats(std::size_t n, std::uint64_t seed, double scale = 1.0) {
  Rng rng(seed, streams::weights);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>((rng.uniform() * 2 - 1) * scale);
  return values;
}

float rounded(float x, const float*) { return x; }
float rounded(float x, const Bf16*) { return to_float(to_bf16(x)); }
void assign(float& out, float x) { out = x; }
void assign(Bf16& out, float x) { out = to_bf16(x); }

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) assign(out[i], values[i]);
  return out;
}

template <class T>
PackedMatrix<T> packed(std::size_t n, std::size_t k, const std::vector<float>& w) {
  PackedMatrix<T> matrix(n, k);
  std::vector<float> rows(kPanel * k);
  for (std::size_t p = 0; p < matrix.panels(); ++p) {
    std::fill(rows.begin(), rows.end(), 0.0f);
    const std::size_t count = std::min(kPanel, n - p * kPanel);
    std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(p * kPanel * k), count * k, rows.begin());
    matrix.pack_panel(p, rows.data());
  }
  return matrix;
}

template <class T>
class Typed : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Typed, Types);

TYPED_TEST(Typed, GemmEqualsThePlainLoop) {
  using T = TypeParam;
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{64, 288}, {37, 64}, {16, 2}, {100, 172}, {144, 96}}) {
    const auto w = random_floats(n * k, 1), a = random_floats(85 * k, 2);
    const auto matrix = packed<T>(n, k, w);
    const auto activations = as<T>(a);
    const std::size_t ldo = matrix.panels() * kPanel;
    for (const Isa isa : supported_isas())
      for (const std::size_t rows : {1, 2, 3, 4, 5, 8, 9, 19, 32, 48, 85}) {
        std::vector<float> out(rows * ldo, 0.5f);
        GemmCall<T> call{activations.data(), k, matrix.data(), rows, k, 0, matrix.panels()};
        call.epilogue = Epilogue::add;
        call.out = out.data();
        call.ldo = ldo;
        kernels_for(isa).typed<T>().gemm(call);
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < n; ++c) {
            double expected = 0.5, size = 1;
            for (std::size_t i = 0; i < k; ++i) {
              const T* tag = nullptr;
              const double term = static_cast<double>(rounded(a[r * k + i], tag)) * rounded(w[c * k + i], tag);
              expected += term;
              size += std::abs(term);
            }
            ASSERT_NEAR(out[r * ldo + c], expected, 2e-6 * size)
                << to_string(isa) << " rows " << rows << " row " << r << " column " << c << " of " << n << "x" << k;
          }
      }
  }
}

TYPED_TEST(Typed, GemmRowsDoNotDependOnTheBatchOrThePanelRange) {
  using T = TypeParam;
  constexpr std::size_t n = 144, k = 192, most = 70;
  const auto matrix = packed<T>(n, k, random_floats(n * k, 3));
  const auto a = as<T>(random_floats(most * k, 4));
  for (const Isa isa : supported_isas()) {
    const auto compute = [&](std::size_t first, std::size_t rows, std::size_t split) {
      std::vector<float> out(rows * n);
      for (std::size_t p = 0; p < matrix.panels(); p += split) {
        GemmCall<T> call{a.data() + first * k, k, matrix.data(), rows, k, p, std::min(p + split, matrix.panels())};
        call.out = out.data();
        call.ldo = n;
        kernels_for(isa).typed<T>().gemm(call);
      }
      return out;
    };
    const auto whole = compute(0, most, matrix.panels());
    for (std::size_t rows = 1; rows <= most; ++rows)
      for (const std::size_t split : {1ul, 2ul, 5ul, matrix.panels()}) {
        const std::size_t first = most - rows;
        const auto part = compute(first, rows, split);
        ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * n, part.size() * sizeof(float)), 0)
            << to_string(isa) << " rows " << rows << " split " << split;
      }
  }
}

/// Rows past the batch keep what was there. The matrix is larger than what AMX's loop holds near, so it goes in two
/// parts.
TYPED_TEST(Typed, EpiloguesOfRowsDoNotDependOnTheBatch) {
  using T = TypeParam;
  constexpr std::size_t n = 1536, k = 288, most = 55, guard = 16;
  const auto matrix = packed<T>(n, k, random_floats(n * k, 16));
  const auto a = as<T>(random_floats(most * k, 17));
  for (const Isa isa : supported_isas()) {
    const auto compute = [&](std::size_t first, std::size_t rows) {
      std::pair result{std::vector<float>((rows + guard) * n, 0.25f), std::vector<T>((rows + guard) * n / 2)};
      GemmCall<T> call{a.data() + first * k, k, matrix.data(), rows, k, 0, matrix.panels(), Epilogue::add};
      call.out = result.first.data();
      call.ldo = n;
      kernels_for(isa).typed<T>().gemm(call);
      call.epilogue = Epilogue::silu_mul;
      call.act = result.second.data();
      call.ldo = n / 2;
      kernels_for(isa).typed<T>().gemm(call);
      for (std::size_t i = rows * n; i < (rows + guard) * n; ++i) EXPECT_EQ(result.first[i], 0.25f) << to_string(isa);
      for (std::size_t i = rows * n / 2; i < (rows + guard) * n / 2; ++i) EXPECT_EQ(to_float(result.second[i]), 0.0f);
      return result;
    };
    const auto whole = compute(0, most);
    for (const std::size_t rows : {1, 4, 15, 16, 17, 31, 33, 47, 49, 54}) {
      const std::size_t first = most - rows;
      const auto part = compute(first, rows);
      ASSERT_EQ(std::memcmp(part.first.data(), &whole.first[first * n], rows * n * sizeof(float)), 0)
          << to_string(isa) << " add, rows " << rows;
      ASSERT_EQ(std::memcmp(part.second.data(), &whole.second[first * n / 2], rows * n / 2 * sizeof(T)), 0)
          << to_string(isa) << " SiLU, rows " << rows;
    }
  }
}

TYPED_TEST(Typed, SiluMulJoinsTheGateAndUpPanels) {
  using T = TypeParam;
  constexpr std::size_t k = 64, f = 48;
  const auto w = random_floats(2 * f * k, 5, 0.5), a = random_floats(53 * k, 6);
  const auto matrix = packed<T>(2 * f, k, w);
  const auto activations = as<T>(a);
  for (const Isa isa : supported_isas())
    for (const std::size_t rows : {1, 3, 11, 17, 53}) {
      std::vector<float> sums(rows * 2 * f);
      GemmCall<T> call{activations.data(), k, matrix.data(), rows, k, 0, matrix.panels()};
      call.out = sums.data();
      call.ldo = 2 * f;
      kernels_for(isa).typed<T>().gemm(call);
      std::vector<T> act(rows * f);
      call.epilogue = Epilogue::silu_mul;
      call.act = act.data();
      call.ldo = f;
      kernels_for(isa).typed<T>().gemm(call);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < f; ++c) {
          const std::size_t gate_column = c / kPanel * 2 * kPanel + c % kPanel;
          const double gate = sums[r * 2 * f + gate_column], up = sums[r * 2 * f + gate_column + kPanel];
          const double expected = gate / (1 + std::exp(-gate)) * up;
          const double tolerance = sizeof(T) == 2 ? 0.005 : 1e-5;
          ASSERT_NEAR(to_float(act[r * f + c]), expected, tolerance * (1 + std::abs(expected))) << to_string(isa);
        }
    }
}

TYPED_TEST(Typed, RmsNormEqualsItsFormula) {
  using T = TypeParam;
  for (const std::size_t n : {16, 64, 288, 172, 10}) {
    const auto x = random_floats(n, 7, 3), w = random_floats(n, 8);
    double squares = 0;
    for (const float v : x) squares += static_cast<double>(v) * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (const Isa isa : supported_isas()) {
      std::vector<T> out(n);
      kernels_for(isa).typed<T>().rms_norm(x.data(), w.data(), 1e-5f, n, out.data());
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_NEAR(to_float(out[i]), x[i] * scale * w[i], sizeof(T) == 2 ? 0.01 : 2e-6) << to_string(isa) << " " << n;
    }
  }
}

/// K and V of one sequence in blocks, with the plain values beside them.
template <class T>
struct Cache {
  KvView<T> kv;
  std::vector<T> memory;
  std::vector<std::uint32_t> blocks;
  std::vector<float> key, value;  // [token][head][dim], as stored

  Cache(const Kernels& kernels, std::size_t heads, std::size_t dim, std::size_t block_size, std::size_t tokens) {
    const std::size_t num_blocks = (tokens + block_size - 1) / block_size;
    kv = {nullptr, heads, dim, block_size};
    memory.resize((2 * num_blocks + 1) * kv.block_stride());
    for (T& x : memory) assign(x, 77.0f);  // what other sequences left behind
    kv.layer = memory.data();
    for (std::size_t i = 0; i < num_blocks; ++i)
      blocks.push_back(static_cast<std::uint32_t>((i * 7 + 3) % num_blocks * 2));
    const auto k = random_floats(tokens * heads * dim, 9), v = random_floats(tokens * heads * dim, 10);
    const std::vector<float> cos(dim / 2, 1.0f), sin(dim / 2, 0.0f);
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t at = (t * heads + h) * dim;
        kernels.typed<T>().store_kv(
            {kv, blocks[t / block_size], t % block_size, h, &k[at], &v[at], cos.data(), sin.data()});
      }
    const T* tag = nullptr;
    for (const float x : k) key.push_back(rounded(x, tag));
    for (const float x : v) value.push_back(rounded(x, tag));
  }
};

template <class T>
std::vector<double> plain_attention(const Cache<T>& cache, std::size_t head, const T* query, std::size_t context,
                                    double scale) {
  const std::size_t dim = cache.kv.head_dim, heads = cache.kv.num_kv_heads;
  std::vector<double> scores(context), out(dim, 0.0);
  double top = -1e30, total = 0;
  for (std::size_t t = 0; t < context; ++t) {
    for (std::size_t i = 0; i < dim; ++i)
      scores[t] += static_cast<double>(to_float(query[i])) * cache.key[(t * heads + head) * dim + i];
    scores[t] *= scale;
    top = std::max(top, scores[t]);
  }
  for (double& s : scores) total += s = std::exp(s - top);
  for (std::size_t t = 0; t < context; ++t)
    for (std::size_t i = 0; i < dim; ++i) out[i] += scores[t] / total * cache.value[(t * heads + head) * dim + i];
  return out;
}

TYPED_TEST(Typed, AttentionEqualsThePlainLoop) {
  using T = TypeParam;
  for (const std::size_t dim : {8, 48, 64, 128})
    for (const Isa isa : supported_isas()) {
      const Kernels& kernels = kernels_for(isa);
      const Cache<T> cache(kernels, 2, dim, 32, 700);
      const auto queries = as<T>(random_floats(kMaxQueries * dim, 11, 4));
      for (std::size_t nq = 1; nq <= kMaxQueries; ++nq) {
        std::vector<T> out(nq * dim);
        AttentionCall<T> call{cache.kv, cache.blocks.data(), 1, nq};
        call.scale = 1 / std::sqrt(static_cast<float>(dim));
        const std::size_t contexts[] = {700, 1, 256, 273};
        for (std::size_t q = 0; q < nq; ++q) {
          call.query[q] = &queries[q * dim];
          call.out[q] = &out[q * dim];
          call.context[q] = contexts[q];
        }
        kernels.typed<T>().attention(call);
        for (std::size_t q = 0; q < nq; ++q) {
          const auto expected = plain_attention(cache, 1, call.query[q], contexts[q], call.scale);
          for (std::size_t i = 0; i < dim; ++i)
            ASSERT_NEAR(to_float(out[q * dim + i]), expected[i], sizeof(T) == 2 ? 0.006 : 2e-5)
                << to_string(isa) << " dim " << dim << " query " << q << " of " << nq;
        }
      }
    }
}

TYPED_TEST(Typed, AttentionDoesNotDependOnBlockSizeOrCompany) {
  using T = TypeParam;
  constexpr std::size_t dim = 64, tokens = 601;
  const auto queries = as<T>(random_floats(kMaxQueries * dim, 12, 4));
  for (const Isa isa : supported_isas()) {
    const Kernels& kernels = kernels_for(isa);
    const auto compute = [&](std::size_t block_size, std::size_t first, std::size_t count) {
      const Cache<T> cache(kernels, 1, dim, block_size, tokens);
      std::vector<T> out(count * dim);
      AttentionCall<T> call{cache.kv, cache.blocks.data(), 0, count};
      call.scale = 0.125f;
      for (std::size_t q = 0; q < count; ++q) {
        call.query[q] = &queries[(first + q) * dim];
        call.out[q] = &out[q * dim];
        call.context[q] = (first + q + 1) * 150 + 1;
      }
      kernels.typed<T>().attention(call);
      return out;
    };
    const auto together = compute(16, 0, 4);
    for (const std::size_t block_size : {16, 32, 64, 128})
      for (std::size_t q = 0; q < 4; ++q) {
        const auto alone = compute(block_size, q, 1);
        ASSERT_EQ(std::memcmp(alone.data(), &together[q * dim], dim * sizeof(T)), 0)
            << to_string(isa) << " block " << block_size << " query " << q;
      }
  }
}

TYPED_TEST(Typed, RopeTurnsKeyAndQueryAlike) {
  using T = TypeParam;
  constexpr std::size_t dim = 16;
  const auto x = random_floats(dim, 13);
  std::vector<float> cos, sin;
  for (std::size_t i = 0; i < dim / 2; ++i) {
    cos.push_back(static_cast<float>(std::cos(0.3 * static_cast<double>(i + 1))));
    sin.push_back(static_cast<float>(std::sin(0.3 * static_cast<double>(i + 1))));
  }
  for (const Isa isa : supported_isas()) {
    const auto& typed = kernels_for(isa).typed<T>();
    std::vector<T> query(dim), memory(2 * 16 * dim);
    typed.rope_query(x.data(), cos.data(), sin.data(), dim, query.data());
    typed.store_kv({{memory.data(), 1, dim, 16}, 0, 5, 0, x.data(), x.data(), cos.data(), sin.data()});
    constexpr std::size_t per_word = sizeof(float) / sizeof(T);
    for (std::size_t i = 0; i < dim; ++i) {
      const std::size_t half = dim / 2, j = i % half;
      const double expected = i < half ? x[j] * cos[j] - x[j + half] * sin[j] : x[j] * sin[j] + x[j + half] * cos[j];
      ASSERT_NEAR(to_float(query[i]), expected, sizeof(T) == 2 ? 0.005 : 1e-6);
      ASSERT_EQ(to_float(memory[i / per_word * 16 * per_word + 5 * per_word + i % per_word]), to_float(query[i]));
      ASSERT_NEAR(to_float(memory[16 * dim + 5 * dim + i]), x[i], sizeof(T) == 2 ? 0.005 : 0);
    }
  }
}

TEST(Kernels, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3f80);  // halfway, down to even
  EXPECT_EQ(to_bf16(1.01171875f).bits, 0x3f82);  // halfway, up to even
  EXPECT_EQ(to_bf16(-INFINITY).bits, 0xff80);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(NAN))));
}

TEST(Kernels, ExpSumIsExactEnough) {
  std::vector<float> x;
  for (int i = 0; i < 1001; ++i) x.push_back(static_cast<float>(i) * -0.11f);
  for (const Isa isa : supported_isas()) {
    std::vector<float> out(x.size());
    double total = 0;
    const double sum = kernels_for(isa).exp_sum(x.data(), x.size(), 0.5f, 0.9f, out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float argument = (x[i] - 0.5f) * 0.9f;
      const double expected = argument < -87.3f ? 0 : std::exp(static_cast<double>(argument));
      ASSERT_NEAR(out[i], expected, expected * 3e-7) << to_string(isa) << " " << i;
      total += expected;
    }
    EXPECT_NEAR(sum, total, total * 1e-6);
  }
}

TEST(Kernels, ArgmaxTakesTheLowestOfEqualsAndNoNaN) {
  for (const Isa isa : supported_isas())
    for (const std::size_t n : {1, 5, 16, 70, 1000}) {
      std::vector<float> x = random_floats(n, 14);
      x[n / 2] = 9;
      if (n > 4) {
        x[n - 1] = 9;
        x[0] = NAN;
      }
      EXPECT_EQ(kernels_for(isa).argmax(x.data(), n), n / 2) << to_string(isa) << " " << n;
    }
}

TEST(Kernels, NamesComeBack) {
  for (const Isa isa : supported_isas()) EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_FALSE(parse_isa("sse9").has_value());
}

#if defined(__x86_64__)
TEST(Kernels, AmxIsOfferedWithTheKernelsPermissionOnly) {
  const auto isas = supported_isas();
  const bool offered = std::find(isas.begin(), isas.end(), Isa::amx) != isas.end();
  constexpr long kGetPermission = 0x1022;
  constexpr std::uint64_t kTileData = std::uint64_t{1} << 18;
  std::uint64_t permitted = 0;
  if (syscall(SYS_arch_prctl, kGetPermission, &permitted) != 0) permitted = 0;  // before Linux 5.16
  EXPECT_TRUE(!offered || (permitted & kTileData) != 0);
}

/// AVX-512 with K not a multiple of 32: the same instructions, so the same bits, whatever the rows.
TEST(Kernels, AmxLeavesOddDepthsToAvx512) {
  const auto isas = supported_isas();
  // Tiles exist on some CPUs only, and only with the kernel's permission; elsewhere there is no such table to look at.
  if (std::find(isas.begin(), isas.end(), Isa::amx) == isas.end()) GTEST_SKIP() << "no AMX here, or not permitted";
  constexpr std::size_t n = 80, k = 172;
  const auto matrix = packed<Bf16>(n, k, random_floats(n * k, 18));
  for (const std::size_t rows : {1, 16, 33}) {
    const auto a = as<Bf16>(random_floats(rows * k, 19));
    const auto compute = [&](Isa isa) {
      std::vector<float> out(rows * n);
      GemmCall<Bf16> call{a.data(), k, matrix.data(), rows, k, 0, matrix.panels()};
      call.out = out.data();
      call.ldo = n;
      kernels_for(isa).bf16.gemm(call);
      return out;
    };
    EXPECT_EQ(compute(Isa::amx), compute(Isa::avx512bf16)) << rows;
  }
}
#endif

TEST(PackedMatrix, RowsComeBack) {
  const auto w = random_floats(37 * 22, 15);
  const auto matrix = packed<float>(37, 22, w);
  std::vector<float> row(22);
  for (std::size_t n = 0; n < 37; ++n) {
    matrix.unpack_row(n, row.data());
    EXPECT_EQ(std::memcmp(row.data(), &w[n * 22], sizeof(float) * 22), 0);
  }
}

}  // namespace
}  // namespace tokenstone::kernels
