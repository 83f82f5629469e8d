#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "engine/weight_source.h"
#include "kernels/bf16.h"
#include "modelfile/model.h"

namespace tokenstone::engine {
namespace {

using modelfile::DType;
using modelfile::ModelFile;
using modelfile::TensorView;

std::string hugging_face_name(Tensor tensor, std::uint32_t layer) {
  const auto in_layer = [&](std::string_view part) { return fmt::format("model.layers.{}.{}.weight", layer, part); };
  switch (tensor) {
    case Tensor::embed:
      return "model.embed_tokens.weight";
    case Tensor::q:
      return in_layer("self_attn.q_proj");
    case Tensor::k:
      return in_layer("self_attn.k_proj");
    case Tensor::v:
      return in_layer("self_attn.v_proj");
    case Tensor::o:
      return in_layer("self_attn.o_proj");
    case Tensor::gate:
      return in_layer("mlp.gate_proj");
    case Tensor::up:
      return in_layer("mlp.up_proj");
    case Tensor::down:
      return in_layer("mlp.down_proj");
    case Tensor::attn_norm:
      return in_layer("input_layernorm");
    case Tensor::ffn_norm:
      return in_layer("post_attention_layernorm");
    case Tensor::final_norm:
      return "model.norm.weight";
    case Tensor::head:
      return "lm_head.weight";
  }
  return {};
}

constexpr std::array kLayerTensors = {Tensor::q,  Tensor::k,    Tensor::v,         Tensor::o,       Tensor::gate,
                                      Tensor::up, Tensor::down, Tensor::attn_norm, Tensor::ffn_norm};
constexpr std::size_t kTensorKinds = 12;

/// IEEE half precision; denormals and infinities included.
float half_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

void convert_row(const TensorView& view, std::size_t row, std::size_t columns, float* out) {
  if (view.dtype == DType::f32) {
    std::memcpy(out, view.data.data() + row * columns * 4, columns * 4);
    return;
  }
  const std::byte* from = view.data.data() + row * columns * 2;
  for (std::size_t i = 0; i < columns; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    out[i] = view.dtype == DType::bf16 ? kernels::to_float(kernels::Bf16{bits}) : half_to_float(bits);
  }
}

class FileWeights final : public WeightSource {
 public:
  FileWeights(const ModelShape& shape, std::shared_ptr<const ModelFile> file)
      : shape_(shape), file_(std::move(file)), views_(shape.layers * kTensorKinds) {}

  void row(Tensor tensor, std::uint32_t layer, std::size_t row, float* out) const override {
    const TensorView* view = views_[slot(tensor, layer)];
    TS_CHECK(view != nullptr, "a tensor that the shape does not have");
    convert_row(*view, file_row(tensor, row), tensor_shape(shape_, tensor).columns, out);
  }

  /// Finds every tensor; what is wrong is added to `faults`, what was found to `known`.
  void bind(std::vector<std::string>& faults, std::set<std::string>& known) {
    bind_one(Tensor::embed, 0, faults, known);
    bind_one(Tensor::final_norm, 0, faults, known);
    if (!shape_.tied_head) bind_one(Tensor::head, 0, faults, known);
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer)
      for (const Tensor tensor : kLayerTensors) bind_one(tensor, layer, faults, known);
  }

 private:
  static std::size_t slot(Tensor tensor, std::uint32_t layer) {
    return layer * kTensorKinds + static_cast<std::size_t>(tensor);
  }

  /// Adjacent pairs (2i, 2i+1) of a head become (i, i + head_dim/2).
  std::size_t file_row(Tensor tensor, std::size_t row) const {
    if (!shape_.rope_interleaved || (tensor != Tensor::q && tensor != Tensor::k)) return row;
    const std::size_t head = row / shape_.head_dim, i = row % shape_.head_dim, half = shape_.head_dim / 2;
    return head * shape_.head_dim + (i < half ? 2 * i : 2 * (i - half) + 1);
  }

  void bind_one(Tensor tensor, std::uint32_t layer, std::vector<std::string>& faults, std::set<std::string>& known) {
    const std::string name = hugging_face_name(tensor, layer);
    const TensorView* view = file_->find(name);
    known.insert(name);
    if (view == nullptr) {
      faults.push_back(fmt::format("{} is missing", name));
      return;
    }
    const auto [rows, columns] = tensor_shape(shape_, tensor);
    std::vector<std::uint64_t> expected{columns};
    if (hugging_face_is_matrix(tensor)) expected.insert(expected.begin(), rows);
    if (view->shape != expected) {
      faults.push_back(fmt::format("{} has shape [{}], expected [{}]", name, fmt::join(view->shape, ", "),
                                   fmt::join(expected, ", ")));
    } else if (view->dtype == DType::other) {
      faults.push_back(fmt::format("{} has type {}, expected F32, F16 or BF16", name, view->dtype_name));
    } else {
      views_[slot(tensor, layer)] = view;
    }
  }

  static bool hugging_face_is_matrix(Tensor tensor) {
    return tensor != Tensor::attn_norm && tensor != Tensor::ffn_norm && tensor != Tensor::final_norm;
  }

  ModelShape shape_;
  std::shared_ptr<const ModelFile> file_;
  std::vector<const TensorView*> views_;
};

/// Tensors that repeat what the configuration or another tensor says.
bool is_harmless(const ModelShape& shape, const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq") || (shape.tied_head && name == "lm_head.weight");
}

Error refusal(const ModelFile& file, const std::vector<std::string>& faults) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> shown(faults.begin(),
                                 faults.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, faults.size())));
  if (faults.size() > kShown) shown.push_back(fmt::format("and {} more", faults.size() - kShown));
  return {ErrorKind::usage,
          fmt::format("{}: expected the tensors of a plain Llama, found: {}; use an unquantised Llama checkpoint",
                      file.path, join(shown, "; ")),
          "model"};
}

}  // namespace

Result<std::unique_ptr<WeightSource>> make_file_weights(const ModelShape& shape,
                                                        std::shared_ptr<const ModelFile> file) {
  auto weights = std::make_unique<FileWeights>(shape, file);
  std::vector<std::string> faults;
  std::set<std::string> known;
  weights->bind(faults, known);
  for (const auto& [name, view] : file->tensors)
    if (!known.contains(name) && !is_harmless(shape, name))
      faults.push_back(fmt::format("{} is not one of them", name));
  for (const std::string& name : file->unknown_tensors) faults.push_back(fmt::format("{} is not one of them", name));
  if (!faults.empty()) return std::unexpected(refusal(*file, faults));
  return weights;
}

Precision natural_precision(const ModelFile& file) {
  const TensorView* embedding = file.find("model.embed_tokens.weight");
  return embedding != nullptr && embedding->dtype == DType::bf16 ? Precision::bfloat16 : Precision::float32;
}

}  // namespace tokenstone::engine
