// Where the numbers of a model come from, row by row: a file, or random numbers.
//
// Ownership: FileWeights keeps its file open. Threads: `row` may be called from any thread at once.
// Failure: everything that can be wrong with a file is found when the source is made; `row` cannot fail.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/model_shape.h"

namespace tokenstone::modelfile {
struct ModelFile;
}

namespace tokenstone::engine {

enum class Tensor : std::uint8_t { embed, q, k, v, o, gate, up, down, attn_norm, ffn_norm, final_norm, head };

/// [outputs, inputs]; a norm is one row.
struct TensorShape {
  std::size_t rows, columns;
};
TensorShape tensor_shape(const ModelShape& shape, Tensor tensor);

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Row `row` of a tensor as floats; q and k rows in half-split order.
  virtual void row(Tensor tensor, std::uint32_t layer, std::size_t row, float* out) const = 0;
};

/// Random numbers that keep activations near one, a function of (seed, tensor, place) alone: a layer's matrices have
/// the variance 1/inputs, those that write to the residual stream 1/(2 layers) of it, as GPT-2's initialisation.
std::unique_ptr<WeightSource> make_random_weights(const ModelShape& shape, std::uint64_t seed);

/// Refuses missing, unknown and mis-shaped tensors and element types that are not floats, by name.
Result<std::unique_ptr<WeightSource>> make_file_weights(const ModelShape& shape,
                                                        std::shared_ptr<const modelfile::ModelFile> file);

/// What `--dtype auto` means for this file: bfloat16 as it stands, all others as float32.
Precision natural_precision(const modelfile::ModelFile& file);

}  // namespace tokenstone::engine
