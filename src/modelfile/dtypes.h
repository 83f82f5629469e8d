// Element types of both formats: their names, and how many bytes so many elements take.
//
// Pure tables. Source: GGUF v3's type numbers and block sizes (ggml), safetensors' dtype words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "modelfile/model.h"

namespace tokenstone::modelfile {

struct ElementType {
  std::string_view name;
  DType dtype = DType::other;
  std::uint32_t block_elements = 1;  ///< elements stored together
  std::uint32_t block_bytes = 0;
};

/// By GGUF type number; nothing for a number that v3 does not define.
std::optional<ElementType> gguf_element_type(std::uint32_t number);
/// By safetensors word, e.g. "BF16".
std::optional<ElementType> safetensors_element_type(std::string_view word);

/// Product of the dimensions; nothing when it does not fit 64 bits.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);
/// Bytes of so many elements; nothing when they do not fill whole blocks or the product does not fit 64 bits.
std::optional<std::uint64_t> byte_count(const ElementType& type, std::uint64_t elements);

}  // namespace tokenstone::modelfile
