#include "modelfile/summary.h"

#include "modelfile/dtypes.h"

namespace tokenstone::modelfile {

ModelSummary summarize(const ModelFile& model) {
  ModelSummary summary;
  for (const auto& [name, tensor] : model.tensors) {
    const std::uint64_t elements = element_count(tensor.shape).value_or(0);
    for (DTypeCount* count : {&summary.total, &summary.by_dtype[tensor.dtype_name]}) {
      count->tensors += 1;
      count->parameters += elements;
      count->bytes += tensor.data.size();
    }
  }
  const ModelConfig& config = model.config;
  summary.kv_elements_per_token = 2ull * config.num_layers * config.num_kv_heads * config.head_dim;
  return summary;
}

}  // namespace tokenstone::modelfile
