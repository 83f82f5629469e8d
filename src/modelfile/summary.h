// What a model file holds, in figures: for `tokenstone model inspect` and for whoever plans memory.
//
// Pure function. Units: bytes, elements. Nothing can fail.
#pragma once

#include <map>

#include "modelfile/model.h"

namespace tokenstone::modelfile {

struct DTypeCount {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

struct ModelSummary {
  DTypeCount total;
  std::map<std::string, DTypeCount> by_dtype;  ///< by the file's own word
  /// Elements of K and V that one token adds over all layers: 2 x layers x KV heads x head dimension.
  std::uint64_t kv_elements_per_token = 0;
};

ModelSummary summarize(const ModelFile& model);

}  // namespace tokenstone::modelfile
