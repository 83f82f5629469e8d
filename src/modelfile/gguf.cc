// GGUF v3: "GGUF", u32 version, u64 tensor count, u64 pair count; then the pairs (key, u32 type, value), the tensor
// infos (name, u32 number of dimensions, u64 dimensions with the fastest first, u32 type, u64 offset) and, at the next
// multiple of `general.alignment` (32 unless stated), the data. A string is a u64 length and bytes; an array a u32
// element type, a u64 count and the items. Every count is checked against the bytes that are left before anything is
// allocated.
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "modelfile/byte_reader.h"
#include "modelfile/dtypes.h"
#include "modelfile/llama_names.h"
#include "modelfile/loaders.h"

namespace tokenstone::modelfile {
namespace {

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
constexpr std::uint32_t kValueTypes = 13;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxNameBytes = 1024;
constexpr std::uint32_t kMaxDimensions = 4;
/// The least that a pair (empty key, a one-byte value) and a tensor info (one dimension) take.
constexpr std::uint64_t kLeastPairBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastInfoBytes = 8 + 4 + 8 + 4 + 8;

std::uint64_t least_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::array:
      return 12;
    default:
      return 8;
  }
}

struct TensorInfo {
  std::string name;
  std::vector<std::uint64_t> shape;
  ElementType type;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

class GgufParser {
 public:
  GgufParser(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes), reader_(bytes) {}

  Status parse(ModelFile& model) {
    TS_TRY_STATUS(header());
    TS_TRY_STATUS(metadata(model));
    TS_TRY_STATUS(alignment(model));
    std::vector<TensorInfo> infos;
    TS_TRY_STATUS(tensor_infos(infos));
    TS_TRY_STATUS(place(infos));
    return name_tensors(infos, model);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return usage_error(
        fmt::format("{}: {} (at byte {}); the file is damaged or not a GGUF v3 file: fetch or convert it again", path_,
                    what, reader_.position()));
  }
  std::unexpected<Error> cut(std::string_view where) const {
    return usage_error(fmt::format("{}: the file ends inside {} ({} bytes in all): it is truncated, fetch it again",
                                   path_, where, bytes_.size()));
  }

  Status header() {
    const auto magic = reader_.text(4);
    if (!magic || *magic != "GGUF")
      return usage_error(
          fmt::format("{}: expected a GGUF file, which begins with \"GGUF\"; found {}", path_, describe_start(bytes_)));
    const auto version = reader_.number<std::uint32_t>();
    const auto tensors = reader_.number<std::uint64_t>();
    const auto pairs = reader_.number<std::uint64_t>();
    if (!version || !tensors || !pairs) return cut("the header");
    if (*version == 0x03000000)
      return usage_error(
          fmt::format("{}: a big-endian GGUF file; convert the model again for little-endian machines", path_));
    if (*version != 3)
      return usage_error(
          fmt::format("{}: expected GGUF version 3, found {}; convert the model again", path_, *version));
    if (*pairs > reader_.remaining() / kLeastPairBytes)
      return wrong(fmt::format("{} metadata pairs are announced, more than the file can hold", *pairs));
    if (*tensors > reader_.remaining() / kLeastInfoBytes)
      return wrong(fmt::format("{} tensors are announced, more than the file can hold", *tensors));
    tensor_count_ = *tensors;
    pair_count_ = *pairs;
    return {};
  }

  Result<std::string_view> string(std::string_view where,
                                  std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    const auto length = reader_.number<std::uint64_t>();
    if (!length) return cut(where);
    if (*length > most) return wrong(fmt::format("{} has {} bytes, at most {} are allowed", where, *length, most));
    const auto text = reader_.text(*length);
    if (!text) return cut(where);
    return *text;
  }

  Result<ValueType> value_type(std::string_view where) {
    const auto number = reader_.number<std::uint32_t>();
    if (!number) return cut(where);
    if (*number >= kValueTypes) return wrong(fmt::format("{} has value type {}, known are 0 to 12", where, *number));
    return static_cast<ValueType>(*number);
  }

  Status metadata(ModelFile& model) {
    for (std::uint64_t i = 0; i < pair_count_; ++i) {
      TS_TRY(const std::string_view key, string("a metadata key", kMaxKeyBytes));
      const std::string where = fmt::format("the metadata value {}", in_quotes(key));
      TS_TRY(const ValueType type, value_type(where));
      TS_TRY(MetaValue value, type == ValueType::array ? array(where) : scalar(type, where));
      if (!model.metadata.emplace(std::string(key), std::move(value)).second)
        return wrong(fmt::format("{} stands twice", where));
    }
    return {};
  }

  template <class Stored, class Kept>
  Result<MetaValue> number(std::string_view where) {
    const auto value = reader_.number<Stored>();
    if (!value) return cut(where);
    return MetaValue(static_cast<Kept>(*value));
  }

  Result<MetaValue> scalar(ValueType type, std::string_view where) {
    switch (type) {
      case ValueType::u8:
        return number<std::uint8_t, std::uint64_t>(where);
      case ValueType::u16:
        return number<std::uint16_t, std::uint64_t>(where);
      case ValueType::u32:
        return number<std::uint32_t, std::uint64_t>(where);
      case ValueType::u64:
        return number<std::uint64_t, std::uint64_t>(where);
      case ValueType::i8:
        return number<std::int8_t, std::int64_t>(where);
      case ValueType::i16:
        return number<std::int16_t, std::int64_t>(where);
      case ValueType::i32:
        return number<std::int32_t, std::int64_t>(where);
      case ValueType::i64:
        return number<std::int64_t, std::int64_t>(where);
      case ValueType::f32:
        return number<float, double>(where);
      case ValueType::f64:
        return number<double, double>(where);
      case ValueType::boolean:
        return number<std::uint8_t, bool>(where);
      case ValueType::string: {
        TS_TRY(const std::string_view text, string(where));
        return MetaValue(std::string(text));
      }
      case ValueType::array:
        break;
    }
    return wrong(fmt::format("{} is an array where a single value belongs", where));
  }

  template <class Stored, class Kept>
  Result<MetaValue> numbers(std::uint64_t count, std::string_view where) {
    std::vector<Kept> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = reader_.number<Stored>();
      if (!value) return cut(where);
      if constexpr (std::is_same_v<Stored, std::uint64_t>)
        if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          return wrong(fmt::format("{} holds {}, above 2^63", where, *value));
      values.push_back(static_cast<Kept>(*value));
    }
    return MetaValue(std::move(values));
  }

  Result<MetaValue> strings(std::uint64_t count, std::string_view where) {
    std::vector<std::string> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      TS_TRY(const std::string_view text, string(where));
      values.emplace_back(text);
    }
    return MetaValue(std::move(values));
  }

  Result<MetaValue> array(std::string_view where) {
    TS_TRY(const ValueType type, value_type(where));
    const auto count = reader_.number<std::uint64_t>();
    if (!count) return cut(where);
    if (*count > reader_.remaining() / least_bytes(type))
      return wrong(fmt::format("{} announces {} items, more than the file can hold", where, *count));
    switch (type) {
      case ValueType::u8:
        return numbers<std::uint8_t, std::int64_t>(*count, where);
      case ValueType::boolean:
        return numbers<std::uint8_t, std::int64_t>(*count, where);
      case ValueType::u16:
        return numbers<std::uint16_t, std::int64_t>(*count, where);
      case ValueType::u32:
        return numbers<std::uint32_t, std::int64_t>(*count, where);
      case ValueType::u64:
        return numbers<std::uint64_t, std::int64_t>(*count, where);
      case ValueType::i8:
        return numbers<std::int8_t, std::int64_t>(*count, where);
      case ValueType::i16:
        return numbers<std::int16_t, std::int64_t>(*count, where);
      case ValueType::i32:
        return numbers<std::int32_t, std::int64_t>(*count, where);
      case ValueType::i64:
        return numbers<std::int64_t, std::int64_t>(*count, where);
      case ValueType::f32:
        return numbers<float, double>(*count, where);
      case ValueType::f64:
        return numbers<double, double>(*count, where);
      case ValueType::string:
        return strings(*count, where);
      case ValueType::array:
        break;
    }
    return wrong(fmt::format("{} is an array of arrays, which no model needs", where));
  }

  Status alignment(const ModelFile& model) {
    const auto found = model.metadata.find("general.alignment");
    if (found == model.metadata.end()) return {};
    const auto* value = std::get_if<std::uint64_t>(&found->second);
    if (value == nullptr || !std::has_single_bit(*value) || *value < 8 || *value > (1u << 20))
      return wrong("general.alignment must be a power of two from 8 to 1048576");
    alignment_ = *value;
    return {};
  }

  Status tensor_infos(std::vector<TensorInfo>& infos) {
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      TensorInfo info;
      TS_TRY(const std::string_view name, string("a tensor name", kMaxNameBytes));
      info.name = name;
      TS_TRY_STATUS(tensor_shape(info));
      TS_TRY_STATUS(tensor_type(info));
      infos.push_back(std::move(info));
    }
    return {};
  }

  Status tensor_shape(TensorInfo& info) {
    const auto dimensions = reader_.number<std::uint32_t>();
    if (!dimensions) return cut("the tensor list");
    if (*dimensions == 0 || *dimensions > kMaxDimensions)
      return wrong(fmt::format("tensor {} has {} dimensions, allowed are 1 to 4", in_quotes(info.name), *dimensions));
    for (std::uint32_t d = 0; d < *dimensions; ++d) {
      const auto size = reader_.number<std::uint64_t>();
      if (!size) return cut("the tensor list");
      if (*size == 0) return wrong(fmt::format("tensor {} has a dimension of zero", in_quotes(info.name)));
      info.shape.insert(info.shape.begin(), *size);
    }
    return {};
  }

  Status tensor_type(TensorInfo& info) {
    const auto number = reader_.number<std::uint32_t>();
    const auto offset = reader_.number<std::uint64_t>();
    if (!number || !offset) return cut("the tensor list");
    const auto type = gguf_element_type(*number);
    if (!type)
      return wrong(fmt::format("tensor {} has element type {}, which this version does not know", in_quotes(info.name),
                               *number));
    const auto elements = element_count(info.shape);
    const bool whole_rows = info.shape.back() % type->block_elements == 0;
    const auto bytes = elements && whole_rows ? byte_count(*type, *elements) : std::nullopt;
    if (!bytes)
      return wrong(fmt::format("tensor {} of type {} has the impossible shape [{}]", in_quotes(info.name), type->name,
                               fmt::join(info.shape, ", ")));
    info.type = *type;
    info.bytes = *bytes;
    info.offset = *offset;
    return {};
  }

  /// Checks that the tensors lie inside the file, aligned and apart.
  Status place(const std::vector<TensorInfo>& infos) {
    if (infos.empty()) return {};
    // No overflow: the position is at most the file's size, the alignment at most 2^20.
    data_start_ = (reader_.position() + alignment_ - 1) / alignment_ * alignment_;
    if (data_start_ > bytes_.size()) return cut("the padding before the tensor data");
    const std::uint64_t room = bytes_.size() - data_start_;
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& info : infos) order.push_back(&info);
    std::ranges::sort(order, {}, &TensorInfo::offset);
    std::uint64_t end = 0;
    for (const TensorInfo* info : order) {
      if (info->offset % alignment_ != 0)
        return wrong(fmt::format("tensor {} has offset {}, not a multiple of {}", in_quotes(info->name), info->offset,
                                 alignment_));
      if (info->offset < end) return wrong(fmt::format("tensor {} overlaps the one before it", in_quotes(info->name)));
      if (info->offset > room || info->bytes > room - info->offset)
        return usage_error(
            fmt::format("{}: tensor {} needs {} bytes at {}, but the data section has {}: the file is truncated or "
                        "damaged, fetch it again",
                        path_, in_quotes(info->name), info->bytes, info->offset, room));
      end = info->offset + info->bytes;
    }
    return {};
  }

  Status name_tensors(std::vector<TensorInfo>& infos, ModelFile& model) {
    for (TensorInfo& info : infos) {
      TensorView view;
      view.file_name = info.name;
      view.dtype = info.type.dtype;
      view.dtype_name = info.type.name;
      view.shape = std::move(info.shape);
      view.data = bytes_.subspan(data_start_ + info.offset, info.bytes);
      const auto known = hugging_face_name(info.name, std::numeric_limits<std::uint32_t>::max());
      view.name = known.value_or(info.name);
      if (!model.tensors.emplace(view.name, view).second)
        return usage_error(
            fmt::format("{}: the tensor {} stands twice; convert the model again", path_, in_quotes(info.name)));
    }
    return {};
  }

  std::string path_;
  std::span<const std::byte> bytes_;
  ByteReader reader_;
  std::uint64_t tensor_count_ = 0, pair_count_ = 0, alignment_ = 32, data_start_ = 0;
};

}  // namespace

Result<std::shared_ptr<const ModelFile>> load_gguf(const std::filesystem::path& path, const LoadOptions&) {
  TS_TRY(MappedFile opened, MappedFile::open(path));
  const auto file = std::make_shared<const MappedFile>(std::move(opened));
  auto model = std::make_shared<ModelFile>();
  model->path = path.string();
  model->format = "gguf";
  model->storage = file;
  TS_TRY_STATUS(GgufParser(model->path, file->bytes()).parse(*model));
  TS_TRY_STATUS(config_from_metadata(*model));
  for (const auto& [name, tensor] : model->tensors)
    if (!hugging_face_name(tensor.file_name, model->config.num_layers))
      model->unknown_tensors.push_back(tensor.file_name);
  return model;
}

}  // namespace tokenstone::modelfile
