// The readers of the formats, for load_model and for each other; nothing outside this module includes it.
//
// Ownership: a TensorStore holds what the views of one model point into. Threads, units, failure: as model.h.
#pragma once

#include <memory>
#include <vector>

#include "modelfile/mapped_file.h"
#include "modelfile/model.h"

namespace tokenstone::modelfile {

struct TensorStore {
  std::vector<MappedFile> files;
  /// Tensors whose elements do not stand at multiples of their size in the file are copied here.
  std::vector<std::unique_ptr<std::uint64_t[]>> copies;
};

/// Fills `model.config` from GGUF metadata and tensor shapes.
Status config_from_metadata(ModelFile& model);
/// Adds one .safetensors file's tensors to `model`; a name that is there already is an error.
Status add_safetensors(const std::filesystem::path& path, const LoadOptions& options, ModelFile& model,
                       TensorStore& store);
/// A folder as Hugging Face lays it out, or one .safetensors file with config.json beside it.
Result<std::shared_ptr<const ModelFile>> load_hugging_face(const std::filesystem::path& path,
                                                           const LoadOptions& options);

}  // namespace tokenstone::modelfile
