// safetensors: u64 length of the header, the header (a JSON object: name -> {dtype, shape, data_offsets: [begin,
// end)}), then the data, which the tensors cover without holes or overlaps. Shapes are row-major. `__metadata__` holds
// texts.
#include <bit>

#include <fmt/format.h>
#include <simdjson.h>

#include "modelfile/byte_reader.h"
#include "modelfile/dtypes.h"
#include "modelfile/loaders.h"

namespace tokenstone::modelfile {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

struct Entry {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

class SafetensorsParser {
 public:
  SafetensorsParser(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  Result<std::vector<Entry>> parse(const LoadOptions& options) {
    TS_TRY(const std::string_view header, find_header(options));
    simdjson::dom::parser parser;
    object root;
    if (const auto error = parser.parse(header.data(), header.size()).get(root); error != simdjson::SUCCESS)
      return wrong(fmt::format("expected a JSON object as header, found {}: {}", describe_start(bytes_.subspan(8)),
                               simdjson::error_message(error)));
    std::vector<Entry> entries;
    for (const auto& [name, value] : root) {
      if (name == "__metadata__") continue;
      TS_TRY(Entry entry, read_entry(name, value));
      entries.push_back(std::move(entry));
    }
    TS_TRY_STATUS(check_cover(entries));
    return entries;
  }

  std::span<const std::byte> data() const { return data_; }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return usage_error(
        fmt::format("{}: {}; the file is damaged or not a safetensors file: fetch it again", path_, what));
  }

  Result<std::string_view> find_header(const LoadOptions& options) {
    ByteReader reader(bytes_);
    const auto length = reader.number<std::uint64_t>();
    if (!length) return wrong(fmt::format("expected a safetensors file, found {}", describe_start(bytes_)));
    if (*length > reader.remaining())
      return wrong(fmt::format("the header's length is given as {} bytes, the file has {}, it begins with {}", *length,
                               bytes_.size(), describe_start(bytes_)));
    if (*length > options.max_header_bytes)
      return usage_error(
          fmt::format("{}: the header has {} bytes, the limit is {}", path_, *length, options.max_header_bytes));
    const std::string_view header = *reader.text(*length);
    data_ = bytes_.subspan(reader.position());
    return header;
  }

  Result<Entry> read_entry(std::string_view name, const element& value) const {
    Entry entry;
    entry.name = name;
    object fields;
    std::string_view dtype;
    if (value.get(fields) != simdjson::SUCCESS || fields.at_key("dtype").get(dtype) != simdjson::SUCCESS)
      return wrong(fmt::format("tensor {} has no dtype", in_quotes(name)));
    const auto type = safetensors_element_type(dtype);
    if (!type) return wrong(fmt::format("tensor {} has the unknown dtype {}", in_quotes(name), in_quotes(dtype)));
    entry.type = *type;
    TS_TRY(entry.shape, whole_numbers(name, "shape", fields));
    TS_TRY(const std::vector<std::uint64_t> offsets, whole_numbers(name, "data_offsets", fields));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size())
      return wrong(fmt::format("tensor {} has data_offsets [{}], the data section has {} bytes", in_quotes(name),
                               fmt::join(offsets, ", "), data_.size()));
    entry.begin = offsets[0];
    entry.end = offsets[1];
    const auto elements = element_count(entry.shape);
    const auto bytes = elements ? byte_count(*type, *elements) : std::nullopt;
    if (!bytes || *bytes != entry.end - entry.begin)
      return wrong(fmt::format("tensor {} of shape [{}] and dtype {} does not fill its {} bytes", in_quotes(name),
                               fmt::join(entry.shape, ", "), dtype, entry.end - entry.begin));
    return entry;
  }

  Result<std::vector<std::uint64_t>> whole_numbers(std::string_view name, std::string_view key,
                                                   const object& fields) const {
    array list;
    std::vector<std::uint64_t> numbers;
    if (fields.at_key(key).get(list) != simdjson::SUCCESS)
      return wrong(fmt::format("tensor {} has no list \"{}\"", in_quotes(name), key));
    for (const element item : list) {
      std::uint64_t number = 0;
      if (item.get(number) != simdjson::SUCCESS)
        return wrong(fmt::format("tensor {}: \"{}\" must hold whole numbers", in_quotes(name), key));
      numbers.push_back(number);
    }
    return numbers;
  }

  Status check_cover(const std::vector<Entry>& entries) const {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries) order.push_back(&entry);
    std::ranges::sort(
        order, [](const Entry* a, const Entry* b) { return std::tie(a->begin, a->end) < std::tie(b->begin, b->end); });
    std::uint64_t end = 0;
    for (const Entry* entry : order) {
      if (entry->begin < end) return wrong(fmt::format("tensor {} overlaps the one before it", in_quotes(entry->name)));
      if (entry->begin > end)
        return wrong(
            fmt::format("there is a hole of {} bytes before tensor {}", entry->begin - end, in_quotes(entry->name)));
      end = entry->end;
    }
    if (end != data_.size())
      return wrong(fmt::format("the tensors end at byte {} of the data section, the file has {}", end, data_.size()));
    return {};
  }

  std::string path_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
};

/// The tensor's bytes where its elements are aligned: in the mapping, or in a copy when the header's length left them
/// askew.
std::span<const std::byte> aligned(std::span<const std::byte> data, const ElementType& type, TensorStore& store) {
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  if (data.empty() || address % type.block_bytes == 0) return data;
  auto copy = std::make_unique<std::uint64_t[]>((data.size() + 7) / 8);
  std::memcpy(copy.get(), data.data(), data.size());
  const std::span<const std::byte> moved(reinterpret_cast<const std::byte*>(copy.get()), data.size());
  store.copies.push_back(std::move(copy));
  return moved;
}

}  // namespace

Status add_safetensors(const std::filesystem::path& path, const LoadOptions& options, ModelFile& model,
                       TensorStore& store) {
  TS_TRY(MappedFile file, MappedFile::open(path));
  SafetensorsParser parser(path.string(), file.bytes());
  TS_TRY(std::vector<Entry> entries, parser.parse(options));
  for (Entry& entry : entries) {
    TensorView view;
    view.name = view.file_name = entry.name;
    view.dtype = entry.type.dtype;
    view.dtype_name = entry.type.name;
    view.shape = std::move(entry.shape);
    view.data = aligned(parser.data().subspan(entry.begin, entry.end - entry.begin), entry.type, store);
    if (!model.tensors.emplace(view.name, view).second)
      return usage_error(
          fmt::format("{}: the tensor {} stands twice (in this file, or in two shards); fetch the model again",
                      path.string(), in_quotes(entry.name)));
  }
  store.files.push_back(std::move(file));
  return {};
}

}  // namespace tokenstone::modelfile
