// Small model files for tests, written byte by byte so that each field can be made wrong.
//
// Pure apart from write_file. Failure: write_file fails the test.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tokenstone::testing {

inline std::filesystem::path write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(path);  // a mapping of the old file stays good, and nothing waits for its blocks
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

class GgufWriter {
 public:
  static std::string text(std::string_view value) { return raw<std::uint64_t>(value.size()) + std::string(value); }

  /// A pair whose value is given as bytes.
  GgufWriter& pair(std::string_view key, std::uint32_t type, std::string_view value) {
    pairs_ += text(key) + raw(type) + std::string(value);
    ++pair_count_;
    return *this;
  }
  GgufWriter& pair_u32(std::string_view key, std::uint32_t value) { return pair(key, 4, raw(value)); }
  GgufWriter& pair_u8(std::string_view key, std::uint8_t value) { return pair(key, 0, raw(value)); }
  GgufWriter& pair_i64(std::string_view key, std::int64_t value) { return pair(key, 11, raw(value)); }
  GgufWriter& pair_f32(std::string_view key, float value) { return pair(key, 6, raw(value)); }
  GgufWriter& pair_bool(std::string_view key, bool value) { return pair(key, 7, raw<std::uint8_t>(value)); }
  GgufWriter& pair_text(std::string_view key, std::string_view value) { return pair(key, 8, text(value)); }
  GgufWriter& pair_texts(std::string_view key, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += text(value);
    return pair(key, 9, raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size()) + items);
  }
  template <class T>
  GgufWriter& pair_numbers(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    std::string items;
    for (const T value : values) items += raw(value);
    return pair(key, 9, raw(type) + raw<std::uint64_t>(values.size()) + items);
  }

  /// `dimensions` with the fastest first, as the file has them.
  GgufWriter& tensor_info(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                          std::uint64_t offset) {
    infos_ += text(name) + raw<std::uint32_t>(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) infos_ += raw(dimension);
    infos_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }
  /// An F32 tensor filled with `value`, its data after those before it.
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, float value = 0.5f) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : dimensions) elements *= dimension;
    tensor_info(name, dimensions, 0, data_.size());
    for (std::uint64_t i = 0; i < elements; ++i) data_ += raw(value);
    data_.resize((data_.size() + 31) / 32 * 32);
    return *this;
  }
  GgufWriter& data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF" + raw<std::uint32_t>(3) + raw(tensor_count_) + raw(pair_count_) + pairs_ + infos_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  std::string pairs_, infos_, data_;
  std::uint64_t pair_count_ = 0, tensor_count_ = 0;
};

inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return raw<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// One Llama layer: hidden 8, 2 heads, 1 KV head, ffn 16, vocabulary 12.
inline GgufWriter tiny_llama_gguf() {
  GgufWriter writer;
  writer.pair_text("general.architecture", "llama")
      .pair_u8("llama.block_count", 1)
      .pair_u32("llama.embedding_length", 8);
  writer.pair_i64("llama.feed_forward_length", 16).pair_u32("llama.attention.head_count", 2);
  writer.pair_u32("llama.attention.head_count_kv", 1).pair_u32("llama.context_length", 64);
  writer.pair_f32("llama.attention.layer_norm_rms_epsilon", 1e-6f).pair_f32("llama.rope.freq_base", 500000.0f);
  writer.tensor("token_embd.weight", {8, 12}, 0.25f).tensor("output_norm.weight", {8});
  writer.tensor("blk.0.attn_norm.weight", {8})
      .tensor("blk.0.attn_q.weight", {8, 8})
      .tensor("blk.0.attn_k.weight", {8, 4});
  writer.tensor("blk.0.attn_v.weight", {8, 4})
      .tensor("blk.0.attn_output.weight", {8, 8})
      .tensor("blk.0.ffn_norm.weight", {8});
  writer.tensor("blk.0.ffn_gate.weight", {8, 16})
      .tensor("blk.0.ffn_up.weight", {8, 16})
      .tensor("blk.0.ffn_down.weight", {16, 8});
  return writer;
}

}  // namespace tokenstone::testing
