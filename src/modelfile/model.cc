#include "modelfile/model.h"

#include <set>

#include <fmt/format.h>
#include <simdjson.h>

#include "modelfile/llama_names.h"
#include "modelfile/loaders.h"

namespace tokenstone::modelfile {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// The index's weight_map: tensor name -> file name, which must be a plain name in the same folder.
Result<std::map<std::string, std::string>> read_index(const std::filesystem::path& path) {
  TS_TRY(const MappedFile file, MappedFile::open(path));
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  if (parser.parse(file.text().data(), file.text().size())["weight_map"].get(map) != simdjson::SUCCESS)
    return usage_error(fmt::format("{}: expected a JSON object with \"weight_map\", found {}; fetch it again",
                                   path.string(), describe_start(file.bytes())));
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, value] : map) {
    std::string_view name;
    const bool is_text = value.get(name) == simdjson::SUCCESS;
    if (!is_text || name.empty() || name.find('/') != std::string_view::npos || name.starts_with('.'))
      return usage_error(
          fmt::format("{}: the file of tensor {} must be a name in the same folder", path.string(), in_quotes(tensor)));
    shards.emplace(tensor, name);
  }
  return shards;
}

Status add_shards(const std::filesystem::path& folder, const LoadOptions& options, ModelFile& model,
                  TensorStore& store) {
  TS_TRY(const auto shards, read_index(folder / kIndexFile));
  std::set<std::string> files;
  for (const auto& [tensor, file] : shards) files.insert(file);
  for (const std::string& file : files) TS_TRY_STATUS(add_safetensors(folder / file, options, model, store));
  for (const auto& [tensor, file] : shards)
    if (model.find(tensor) == nullptr)
      return usage_error(fmt::format("{}: the index names tensor {}, which {} does not hold; fetch the shards again",
                                     folder.string(), in_quotes(tensor), file));
  return {};
}

/// Where the weights of a path are: the folder, and the one file if there is no index.
struct Layout {
  std::filesystem::path folder;
  std::filesystem::path single;
};

Result<Layout> find_layout(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) {
    if (path.filename() == kIndexFile) return Layout{path.parent_path(), {}};
    return Layout{path.parent_path(), path};
  }
  if (std::filesystem::exists(path / kIndexFile)) return Layout{path, {}};
  if (std::filesystem::exists(path / kSingleFile)) return Layout{path, path / kSingleFile};
  return usage_error(
      fmt::format("{}: expected {} or {} in this folder, found neither; give a GGUF file or a Hugging Face folder",
                  path.string(), kSingleFile, kIndexFile));
}

bool begins_as_gguf(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return file && file->text().starts_with("GGUF");
}

std::unexpected<Error> not_a_model(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return std::unexpected(file.error());
  return usage_error(
      fmt::format("{}: expected a GGUF file, a .safetensors file or a Hugging Face folder; the file begins with {}",
                  path.string(), describe_start(file->bytes())));
}

}  // namespace

const TensorView* ModelFile::find(std::string_view name) const {
  const auto found = tensors.find(std::string(name));
  return found == tensors.end() ? nullptr : &found->second;
}

Result<std::shared_ptr<const ModelFile>> load_hugging_face(const std::filesystem::path& path,
                                                           const LoadOptions& options) {
  TS_TRY(const Layout layout, find_layout(path));
  auto model = std::make_shared<ModelFile>();
  auto store = std::make_shared<TensorStore>();
  model->path = path.string();
  model->format = "safetensors";
  if (layout.single.empty())
    TS_TRY_STATUS(add_shards(layout.folder, options, *model, *store));
  else
    TS_TRY_STATUS(add_safetensors(layout.single, options, *model, *store));
  const std::filesystem::path config = layout.folder / "config.json";
  if (!std::filesystem::exists(config))
    return usage_error(
        fmt::format("{}: expected config.json beside the weights; fetch the model's config.json too", config.string()));
  TS_TRY(model->config, load_config(config));
  for (const auto& [name, tensor] : model->tensors)
    if (!is_llama_tensor(name, model->config.num_layers)) model->unknown_tensors.push_back(name);
  model->storage = std::move(store);
  return model;
}

Result<std::shared_ptr<const ModelFile>> load_model(const std::filesystem::path& path, const LoadOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return usage_error(
        fmt::format("{}: no such file or folder; give a GGUF file or a Hugging Face folder", path.string()));
  if (std::filesystem::is_directory(path)) return load_hugging_face(path, options);
  if (path.extension() == ".gguf" || begins_as_gguf(path)) {
    TS_TRY(auto model, load_gguf(path, options));
    if (model->tensors.empty())
      return usage_error(
          fmt::format("{}: the file holds no tensors, only a vocabulary; give a file with weights", path.string()));
    return model;
  }
  if (path.extension() == ".safetensors" || path.filename() == kIndexFile) return load_hugging_face(path, options);
  return not_a_model(path);
}

}  // namespace tokenstone::modelfile
