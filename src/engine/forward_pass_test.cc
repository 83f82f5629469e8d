// The forward pass against a plain loop over the same weights, and against itself for every batch, chunk, thread and
// block.
#include "engine/forward_pass.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "engine/step_driver.h"

namespace tokenstone::engine {
namespace {

ModelShape small_shape() {
  ModelShape shape;
  shape.name = "small";
  shape.hidden = 72;
  shape.layers = 2;
  shape.heads = 6;
  shape.kv_heads = 2;
  shape.head_dim = 12;
  shape.ffn = 90;
  shape.vocab = 301;
  shape.context = 2048;
  return shape;
}

std::vector<TokenId> random_tokens(std::size_t n, std::uint64_t seed) {
  Rng rng(seed, streams::prompts);
  std::vector<TokenId> tokens(n);
  for (TokenId& t : tokens) t = static_cast<TokenId>(rng.uniform_int(0, small_shape().vocab - 1));
  return tokens;
}

/// The same weights but a residual stream that matters, a head of its own and norms that are not all ones.
class TestWeights final : public WeightSource {
 public:
  explicit TestWeights(const ModelShape& shape) : shape_(shape), random_(make_random_weights(shape, 3)) {}
  void row(Tensor tensor, std::uint32_t layer, std::size_t row, float* out) const override {
    random_->row(tensor, layer, row, out);
    const std::size_t n = tensor_shape(shape_, tensor).columns;
    const bool norm = tensor == Tensor::attn_norm || tensor == Tensor::ffn_norm || tensor == Tensor::final_norm;
    for (std::size_t i = 0; i < n; ++i) {
      if (norm) out[i] = 1.0f + 0.01f * static_cast<float>(i % 7);
      if (tensor == Tensor::q || tensor == Tensor::k) out[i] *= 2.0f;
    }
  }

 private:
  ModelShape shape_;
  std::unique_ptr<WeightSource> random_;
};

// --- the plain loop ---

using Vector = std::vector<double>;

class PlainModel {
 public:
  PlainModel(const ModelShape& shape, const WeightSource& source) : s_(shape), source_(source) {}

  Vector logits(const std::vector<TokenId>& tokens) {
    std::vector<Vector> x;
    for (const TokenId t : tokens) x.push_back(row(Tensor::embed, 0, static_cast<std::size_t>(t)));
    for (std::uint32_t l = 0; l < s_.layers; ++l) layer(x, l);
    return times(s_.tied_head ? Tensor::embed : Tensor::head, 0, norm(x.back(), Tensor::final_norm, 0));
  }

 private:
  Vector row(Tensor t, std::uint32_t layer, std::size_t r) {
    std::vector<float> values(tensor_shape(s_, t).columns);
    source_.row(t, layer, r, values.data());
    return Vector(values.begin(), values.end());
  }
  Vector times(Tensor t, std::uint32_t layer, const Vector& x) {
    Vector out;
    for (std::size_t r = 0; r < tensor_shape(s_, t).rows; ++r) {
      const Vector w = row(t, layer, r);
      double sum = 0;
      for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * x[i];
      out.push_back(sum);
    }
    return out;
  }
  Vector norm(const Vector& x, Tensor t, std::uint32_t layer) {
    const Vector w = row(t, layer, 0);
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + s_.rms_eps);
    Vector out(x);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= scale * w[i];
    return out;
  }
  void rotate(Vector& x, std::size_t heads, std::size_t position) const {
    const std::size_t dim = s_.head_dim, half = dim / 2;
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) *
                             std::pow(s_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
        double &a = x[h * dim + i], &b = x[h * dim + i + half];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
  }
  void layer(std::vector<Vector>& x, std::uint32_t l) {
    std::vector<Vector> keys, values;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Vector h = norm(x[t], Tensor::attn_norm, l);
      Vector q = times(Tensor::q, l, h);
      keys.push_back(times(Tensor::k, l, h));
      values.push_back(times(Tensor::v, l, h));
      rotate(q, s_.heads, t);
      rotate(keys.back(), s_.kv_heads, t);
      add(x[t], times(Tensor::o, l, attend(q, keys, values)));
      const Vector f = norm(x[t], Tensor::ffn_norm, l);
      Vector gate = times(Tensor::gate, l, f);
      const Vector up = times(Tensor::up, l, f);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(x[t], times(Tensor::down, l, gate));
    }
  }
  Vector attend(const Vector& q, const std::vector<Vector>& keys, const std::vector<Vector>& values) const {
    Vector out(q.size(), 0.0);
    for (std::size_t h = 0; h < s_.heads; ++h) {
      const std::size_t kv = h / s_.group() * s_.head_dim, own = h * s_.head_dim;
      Vector weight;
      double total = 0;
      for (const Vector& key : keys) {
        double score = 0;
        for (std::size_t i = 0; i < s_.head_dim; ++i) score += q[own + i] * key[kv + i];
        weight.push_back(std::exp(score / std::sqrt(static_cast<double>(s_.head_dim))));
        total += weight.back();
      }
      for (std::size_t t = 0; t < keys.size(); ++t)
        for (std::size_t i = 0; i < s_.head_dim; ++i) out[own + i] += weight[t] / total * values[t][kv + i];
    }
    return out;
  }
  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const ModelShape s_;
  const WeightSource& source_;
};

CpuExecutor make_executor(const ModelShape& shape, Precision precision, std::size_t threads, std::uint32_t block_size,
                          const kernels::Kernels* table = nullptr) {
  return CpuExecutor(shape, TestWeights(shape), {precision, threads, 4096 / block_size, block_size, table});
}

TEST(ForwardPass, EqualsThePlainLoopOnEveryInstructionSet) {
  for (const bool tied : {true, false}) {
    ModelShape shape = small_shape();
    shape.tied_head = tied;
    const auto tokens = random_tokens(40, 1);
    const TestWeights weights(shape);
    const Vector expected = PlainModel(shape, weights).logits(tokens);
    for (const kernels::Isa isa : kernels::supported_isas())
      for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
        CpuExecutor executor = make_executor(shape, precision, 2, 16, &kernels::kernels_for(isa));
        StepDriver driver(executor, 16);
        driver.plan(driver.add(tokens), 40);
        const auto logits = driver.step();
        ASSERT_EQ(logits.size(), 1u);
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(logits[0][i], expected[i], precision == Precision::float32 ? 2e-5 : 0.06)
              << kernels::to_string(isa) << " " << to_string(precision) << " logit " << i;
      }
  }
}

/// Three sequences, prompts cut into chunks of `chunk` tokens, all that is unfinished in each step; then `decodes`
/// tokens each. Returns every logit row by sequence and step.
std::vector<std::vector<std::vector<float>>> generate(CpuExecutor& executor, std::uint32_t block_size,
                                                      std::uint32_t chunk, bool together, int decodes) {
  StepDriver driver(executor, block_size);
  std::vector<DrivenSequence*> sequences;
  const std::size_t lengths[] = {1, 37, 300};
  for (std::size_t i = 0; i < 3; ++i) sequences.push_back(&driver.add(random_tokens(lengths[i], 10 + i)));
  std::vector<std::vector<std::vector<float>>> rows(3);
  const auto wanted = static_cast<std::size_t>(decodes);
  const auto advance = [&](const std::vector<std::size_t>& members) {
    std::vector<std::size_t> sampling;
    for (const std::size_t m : members) {
      if (rows[m].size() == wanted) continue;
      const auto left = static_cast<std::uint32_t>(sequences[m]->tokens.size()) - sequences[m]->computed;
      driver.plan(*sequences[m], std::min(left, chunk));
      if (left <= chunk) sampling.push_back(m);
    }
    const auto logits = driver.step();
    for (std::size_t i = 0; i < logits.size(); ++i) rows[sampling[i]].push_back(logits[i]);
  };
  const auto unfinished = [&](std::size_t m) { return rows[m].size() < wanted; };
  if (together) {
    while (unfinished(0) || unfinished(1) || unfinished(2)) advance({2, 0, 1});
  } else {
    for (std::size_t m = 0; m < 3; ++m)
      while (unfinished(m)) advance({m});
  }
  return rows;
}

TEST(ForwardPass, LogitsAreBitEqualForEveryBatchChunkThreadCountAndBlockSize) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    CpuExecutor reference = make_executor(small_shape(), precision, 1, 16);
    const auto expected = generate(reference, 16, 1000, false, 6);
    const auto same = [&](std::uint32_t block_size, std::size_t threads, std::uint32_t chunk, bool together) {
      CpuExecutor executor = make_executor(small_shape(), precision, threads, block_size);
      ASSERT_EQ(generate(executor, block_size, chunk, together, 6), expected)
          << to_string(precision) << " block " << block_size << " threads " << threads << " chunk " << chunk;
    };
    for (const std::uint32_t block_size : {16u, 32u, 64u, 128u}) same(block_size, 2, 1000, true);
    for (const std::uint32_t chunk : {1u, 3u, 16u, 61u}) same(32, 1, chunk, true);
    for (const std::size_t threads : {2, 3, 4}) same(16, threads, 50, true);
  }
}

TEST(ForwardPass, RowsOfOneStepDoNotDependOnTheirNumber) {
  CpuExecutor executor = make_executor(small_shape(), Precision::bfloat16, 2, 16);
  std::vector<std::vector<float>> alone;
  for (std::size_t n = 1; n <= 64; n += n < 10 ? 1 : 9) {
    StepDriver driver(executor, 16);
    for (std::size_t i = 0; i < n; ++i) driver.plan(driver.add(random_tokens(2, i)), 2);
    const auto logits = driver.step();
    if (n == 1) alone = logits;
    ASSERT_EQ(logits[0], alone[0]) << n;
    while (alone.size() < n) alone.push_back(logits[alone.size()]);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(logits[i], alone[i]) << "row " << i << " of " << n;
  }
}

TEST(ForwardPass, SharedPrefixBlocksGiveEqualOutput) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    CpuExecutor executor = make_executor(small_shape(), precision, 2, 16);
    StepDriver driver(executor, 16);
    const auto tokens = random_tokens(75, 4);
    DrivenSequence& whole = driver.add(tokens);
    driver.plan(whole, 75);
    const auto expected = driver.step();
    DrivenSequence& sharing = driver.add(tokens, &whole, 4);
    driver.plan(sharing, 11);
    EXPECT_EQ(driver.step(), expected);
    EXPECT_EQ(sharing.tokens, whole.tokens);
  }
}

TEST(ForwardPass, BlocksWrittenInTheSameStepCanBeRead) {
  CpuExecutor executor = make_executor(small_shape(), Precision::bfloat16, 2, 16);
  StepDriver driver(executor, 16);
  const auto tokens = random_tokens(40, 5);
  DrivenSequence& writer = driver.add(tokens);
  driver.plan(writer, 40);
  const auto expected = driver.step();
  DrivenSequence& again = driver.add(tokens);
  driver.plan(again, 40);
  DrivenSequence& reader = driver.add(tokens, &again, 2);
  driver.plan(reader, 8);
  const auto logits = driver.step();
  EXPECT_EQ(logits[0], expected[0]);
  EXPECT_EQ(logits[1], expected[0]);
}

TEST(ForwardPass, MinTokensForbidsTheEnd) {
  ModelShape shape = small_shape();
  const auto tokens = random_tokens(20, 6);
  const auto next = [&](std::int32_t min_tokens, std::vector<TokenId> eos, std::vector<TokenId> stop) {
    shape.eos = std::move(eos);
    CpuExecutor executor = make_executor(shape, Precision::float32, 1, 16);
    StepDriver driver(executor, 16);
    DrivenSequence& seq = driver.add(tokens);
    seq.sampling.min_tokens = min_tokens;
    seq.sampling.stop_token_ids = std::move(stop);
    driver.plan(seq, 20);
    driver.step();
    return seq.tokens.back();
  };
  const TokenId first = next(0, {}, {});
  EXPECT_EQ(next(0, {first}, {first}), first);
  EXPECT_NE(next(1, {first}, {}), first);
  EXPECT_NE(next(1, {}, {first}), first);
}

TEST(ForwardPass, SamplingDependsOnSeedAndPositionNotOnTheBatch) {
  CpuExecutor executor = make_executor(small_shape(), Precision::bfloat16, 2, 16);
  const auto draw = [&](std::uint64_t seed, int company) {
    StepDriver driver(executor, 16);
    for (int i = 0; i < company; ++i) driver.plan(driver.add(random_tokens(5, 50 + static_cast<std::uint64_t>(i))), 5);
    DrivenSequence& seq = driver.add(random_tokens(9, 7));
    seq.sampling.temperature = 1.5;
    seq.sampling.seed = seed;
    driver.plan(seq, 9);
    driver.step();
    for (int i = 0; i < 10; ++i) {
      driver.plan(seq, 1);
      driver.step();
    }
    return seq.tokens;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 5));
  EXPECT_NE(draw(1, 0), draw(2, 0));
}

TEST(ForwardPass, BuiltinShapesSayVariedThings) {
  // Random weights whose greedy text repeats one token would be a poor stand-in for a model.
  const auto shape = *find_builtin_shape("tiny-15m");
  CpuExecutor executor(shape, *make_random_weights(shape, 0), {Precision::bfloat16, 2, 16, 16, nullptr});
  StepDriver driver(executor, 16);
  DrivenSequence& seq = driver.add({1, 2, 3});
  driver.plan(seq, 3);
  driver.step();
  for (int i = 0; i < 40; ++i) {
    driver.plan(seq, 1);
    const auto logits = driver.step();
    for (const float l : logits[0]) ASSERT_LT(std::abs(l), 20.0f);
  }
  std::sort(seq.tokens.begin(), seq.tokens.end());
  EXPECT_GT(std::unique(seq.tokens.begin(), seq.tokens.end()) - seq.tokens.begin(), 8);
}

}  // namespace
}  // namespace tokenstone::engine
