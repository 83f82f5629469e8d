// Google Benchmark for the kernels and for whole steps of the engine: how far from the machine's bandwidth and peak.
//
//   kernels_bench --benchmark_filter=Gemm      weights in GB/s, work in GFLOP/s, by rows; one thread
//   kernels_bench --benchmark_filter=Attention K and V in GB/s, 16-token blocks in shuffled order
//   kernels_bench --benchmark_filter=Step      tokens per second of decode and prefill, by threads
//
// Weights rotate over more memory than a core's caches hold, so that small batches read from where real models are
// read.
#include <benchmark/benchmark.h>

#include <cmath>

#include "base/rng.h"
#include "engine/step_driver.h"
#include "kernels/packed_matrix.h"

namespace tokenstone {
namespace {

using kernels::Bf16;
using kernels::Isa;
using kernels::kPanel;

Bf16 small_value(std::size_t i) { return kernels::to_bf16(static_cast<float>(i % 17) * 0.01f - 0.08f); }

void gemm_bf16(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t n = 1536, k = 2048, copies = 32;
  kernels::HugeBuffer weights(copies * n * k * sizeof(Bf16));
  for (std::size_t i = 0; i < copies * n * k; ++i) weights.as<Bf16>()[i] = small_value(i);
  std::vector<Bf16> a(rows * k);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = small_value(i);
  std::vector<float> out(rows * n);
  kernels::GemmCall<Bf16> call{a.data(), k, nullptr, rows, k, 0, n / kPanel};
  call.out = out.data();
  call.ldo = n;
  std::size_t copy = 0;
  for (auto _ : state) {
    call.w = weights.as<Bf16>() + copy * n * k;
    copy = (copy + 1) % copies;
    kernels::default_kernels().bf16.gemm(call);
    benchmark::DoNotOptimize(out.data());
  }
  const double steps = static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(steps * n * k * sizeof(Bf16) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] =
      benchmark::Counter(steps * 2.0 * n * k * static_cast<double>(rows) * 1e-9, benchmark::Counter::kIsRate);
}
BENCHMARK(gemm_bf16)->Name("GemmBf16")->ArgName("rows")->RangeMultiplier(2)->Range(1, 64)->Arg(512);

void attention_bf16(benchmark::State& state) {
  const auto group = static_cast<std::size_t>(state.range(0)), block_size = static_cast<std::size_t>(state.range(1));
  constexpr std::size_t dim = 64, context = 2048, sequences = 64;
  const std::size_t blocks = context / block_size;
  kernels::KvView<Bf16> kv{nullptr, 1, dim, block_size};
  kernels::HugeBuffer memory(sequences * blocks * kv.block_stride() * sizeof(Bf16));
  for (std::size_t i = 0; i < memory.bytes() / sizeof(Bf16); ++i) memory.as<Bf16>()[i] = small_value(i);
  kv.layer = memory.as<Bf16>();
  std::vector<std::uint32_t> table(sequences * blocks);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint32_t>(i);
  Rng rng(1, streams::shuffle);
  for (std::size_t i = table.size(); i > 1; --i)
    std::swap(table[i - 1], table[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(i) - 1))]);
  std::vector<Bf16> query(group * dim, small_value(3)), out(group * dim);
  kernels::AttentionCall<Bf16> call{kv, nullptr, 0, group};
  call.scale = 0.125f;
  for (std::size_t q = 0; q < group; ++q) {
    call.query[q] = &query[q * dim];
    call.out[q] = &out[q * dim];
    call.context[q] = context;
  }
  std::size_t sequence = 0;
  for (auto _ : state) {
    call.blocks = &table[sequence * blocks];
    sequence = (sequence + 1) % sequences;
    kernels::default_kernels().bf16.attention(call);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * context * 2 * dim * sizeof(Bf16) * 1e-9, benchmark::Counter::kIsRate);
}
BENCHMARK(attention_bf16)->Name("AttentionBf16")->ArgNames({"group", "block"})->ArgsProduct({{1, 3, 4}, {16, 128}});

void argmax(benchmark::State& state) {
  std::vector<float> logits(49152);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 49151);
  for (auto _ : state) benchmark::DoNotOptimize(kernels::default_kernels().argmax(logits.data(), logits.size()));
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 49152 * 4 * 1e-9, benchmark::Counter::kIsRate);
}
BENCHMARK(argmax)->Name("Argmax49152");

/// Decode steps of `batch` sequences after a short prompt, or one prefill of `prefill` tokens per iteration.
void step(benchmark::State& state, const char* name, std::uint32_t batch, std::uint32_t prefill) {
  const auto shape = *engine::find_builtin_shape(name);
  const auto threads = static_cast<std::size_t>(state.range(0));
  engine::CpuExecutor executor(shape, *engine::make_random_weights(shape, 0),
                               {engine::Precision::bfloat16, threads, 16384, 16, nullptr});
  engine::StepDriver driver(executor, 16);
  std::vector<engine::DrivenSequence*> sequences;
  for (std::uint32_t i = 0; i < batch; ++i) {
    sequences.push_back(&driver.add(std::vector<TokenId>(std::max(prefill, 16u), static_cast<TokenId>(i + 1))));
    driver.plan(*sequences.back(), std::max(prefill, 16u));
  }
  driver.step();
  for (auto _ : state) {
    if (prefill > 0) {
      sequences[0]->computed = 0;
      sequences[0]->tokens.resize(prefill);
    }
    for (engine::DrivenSequence* seq : sequences) driver.plan(*seq, std::max(prefill, 1u));
    driver.step();
  }
  state.counters["tokens/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * batch * std::max(prefill, 1u), benchmark::Counter::kIsRate);
  if (prefill == 0)
    state.counters["weights GB/s"] = benchmark::Counter(
        static_cast<double>(state.iterations()) * static_cast<double>(executor.weight_bytes()) * 1e-9,
        benchmark::Counter::kIsRate);
}

void register_steps() {
  for (const char* name : {"tiny-15m", "stories-110m", "smollm2-135m"})
    for (const auto& [batch, prefill] : {std::pair{1u, 0u}, {16u, 0u}, {32u, 0u}, {1u, 512u}}) {
      const std::string kind = prefill > 0 ? "prefill512" : "decode" + std::to_string(batch);
      benchmark::RegisterBenchmark(
          ("Step/" + std::string(name) + "/" + kind).c_str(),
          [name, batch = batch, prefill = prefill](benchmark::State& state) { step(state, name, batch, prefill); })
          ->ArgName("threads")
          ->Arg(1)
          ->Arg(2)
          ->UseRealTime();
    }
}

}  // namespace
}  // namespace tokenstone

int main(int argc, char** argv) {
  tokenstone::register_steps();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
