#include "modelfile/dtypes.h"

namespace tokenstone::modelfile {
namespace {

struct GgufType {
  std::uint32_t number;
  ElementType type;
};

constexpr GgufType kGgufTypes[] = {
    {0, {"F32", DType::f32, 1, 4}},           {1, {"F16", DType::f16, 1, 2}},
    {2, {"Q4_0", DType::other, 32, 18}},      {3, {"Q4_1", DType::other, 32, 20}},
    {6, {"Q5_0", DType::other, 32, 22}},      {7, {"Q5_1", DType::other, 32, 24}},
    {8, {"Q8_0", DType::other, 32, 34}},      {9, {"Q8_1", DType::other, 32, 36}},
    {10, {"Q2_K", DType::other, 256, 84}},    {11, {"Q3_K", DType::other, 256, 110}},
    {12, {"Q4_K", DType::other, 256, 144}},   {13, {"Q5_K", DType::other, 256, 176}},
    {14, {"Q6_K", DType::other, 256, 210}},   {15, {"Q8_K", DType::other, 256, 292}},
    {16, {"IQ2_XXS", DType::other, 256, 66}}, {17, {"IQ2_XS", DType::other, 256, 74}},
    {18, {"IQ3_XXS", DType::other, 256, 98}}, {19, {"IQ1_S", DType::other, 256, 50}},
    {20, {"IQ4_NL", DType::other, 32, 18}},   {21, {"IQ3_S", DType::other, 256, 110}},
    {22, {"IQ2_S", DType::other, 256, 82}},   {23, {"IQ4_XS", DType::other, 256, 136}},
    {24, {"I8", DType::other, 1, 1}},         {25, {"I16", DType::other, 1, 2}},
    {26, {"I32", DType::other, 1, 4}},        {27, {"I64", DType::other, 1, 8}},
    {28, {"F64", DType::other, 1, 8}},        {29, {"IQ1_M", DType::other, 256, 56}},
    {30, {"BF16", DType::bf16, 1, 2}},        {34, {"TQ1_0", DType::other, 256, 54}},
    {35, {"TQ2_0", DType::other, 256, 66}},   {39, {"MXFP4", DType::other, 32, 17}},
};

constexpr ElementType kSafetensorsTypes[] = {
    {"F32", DType::f32, 1, 4},       {"F16", DType::f16, 1, 2},       {"BF16", DType::bf16, 1, 2},
    {"F64", DType::other, 1, 8},     {"I64", DType::other, 1, 8},     {"U64", DType::other, 1, 8},
    {"I32", DType::other, 1, 4},     {"U32", DType::other, 1, 4},     {"I16", DType::other, 1, 2},
    {"U16", DType::other, 1, 2},     {"I8", DType::other, 1, 1},      {"U8", DType::other, 1, 1},
    {"BOOL", DType::other, 1, 1},    {"F8_E4M3", DType::other, 1, 1}, {"F8_E5M2", DType::other, 1, 1},
    {"F8_E8M0", DType::other, 1, 1}, {"F4", DType::other, 2, 1},
};

}  // namespace

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::other:
      break;
  }
  return "other";
}

std::optional<ElementType> gguf_element_type(std::uint32_t number) {
  for (const GgufType& entry : kGgufTypes)
    if (entry.number == number) return entry.type;
  return std::nullopt;
}

std::optional<ElementType> safetensors_element_type(std::string_view word) {
  for (const ElementType& type : kSafetensorsTypes)
    if (type.name == word) return type;
  return std::nullopt;
}

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t dimension : shape)
    if (__builtin_mul_overflow(product, dimension, &product)) return std::nullopt;
  return product;
}

std::optional<std::uint64_t> byte_count(const ElementType& type, std::uint64_t elements) {
  if (elements % type.block_elements != 0) return std::nullopt;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / type.block_elements, std::uint64_t{type.block_bytes}, &bytes))
    return std::nullopt;
  return bytes;
}

}  // namespace tokenstone::modelfile
