#include "modelfile/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"

namespace tokenstone::modelfile {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// Kinds of file that people hand over by mistake, by their first bytes.
std::string_view kind_of(std::string_view start) {
  struct Mark {
    std::string_view start, kind;
  };
  static constexpr Mark marks[] = {
      {"version https://git-lfs", "a Git LFS pointer: fetch the file itself with `git lfs pull`"},
      {"<", "a web page or XML: the download gave something else than the file"},
      {"GGUF", "a GGUF file"},
      {"PK\x03\x04", "a zip archive, as PyTorch's .bin and .pt files are: convert it to safetensors or GGUF"},
      {"\x1f\x8b", "gzip: unpack it first"},
      {"ggml", "an old GGML file: convert it to GGUF"},
      {"ggjt", "an old GGML file: convert it to GGUF"},
      {"{", "JSON"},
  };
  for (const Mark& mark : marks)
    if (start.starts_with(mark.start)) return mark.kind;
  return {};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    return usage_error(fmt::format("cannot open {}: {}; check the path", path.string(), std::strerror(errno)));
  struct stat about{};
  if (::fstat(file.fd, &about) != 0)
    return usage_error(fmt::format("cannot look at {}: {}", path.string(), std::strerror(errno)));
  if (!S_ISREG(about.st_mode))
    return usage_error(fmt::format("{} is not a regular file; give the path of a file", path.string()));
  if (about.st_size == 0) return MappedFile(nullptr, 0);
  const auto size = static_cast<std::size_t>(about.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED)
    return usage_error(fmt::format("cannot map {} ({} bytes): {}", path.string(), size, std::strerror(errno)));
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string describe_start(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "nothing (the file is empty)";
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 64));
  const std::string_view kind = kind_of(all);
  const std::string_view start = all.substr(0, 8);
  const bool is_text = std::all_of(start.begin(), start.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  std::string shown;
  if (is_text) {
    shown = fmt::format("\"{}\"", start);
  } else {
    for (const char c : start)
      shown += fmt::format("{}{:02X}", shown.empty() ? "" : " ", static_cast<unsigned char>(c));
  }
  return kind.empty() ? shown : fmt::format("{} ({})", shown, kind);
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t most = 80;
  std::string shown = to_valid_utf8(name.substr(0, most));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return fmt::format("\"{}{}\"", shown, name.size() > most ? "..." : "");
}

}  // namespace tokenstone::modelfile
