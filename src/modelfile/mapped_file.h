// A file's bytes, mapped for reading, and words for what a file turned out to be.
//
// Ownership: the mapping lives as long as the MappedFile. Threads: immutable. Units: bytes.
// Failure: a file that is missing, not a regular file or not readable gives an Error of kind usage. A file that another
// process shortens while it is mapped ends the process (SIGBUS), as with every mapped model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tokenstone::modelfile {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Never a null pointer, also for an empty file.
  std::string_view text() const {
    return size_ == 0 ? std::string_view("") : std::string_view(reinterpret_cast<const char*>(data_), size_);
  }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What a file begins with, for a message: `"<!DOCTYP" (a web page)`, `80 03 8A (binary)`.
std::string describe_start(std::span<const std::byte> bytes);
/// A name out of a file, made fit for a message: valid UTF-8, no control characters, at most 80 bytes or so, in quotes.
std::string in_quotes(std::string_view name);

}  // namespace tokenstone::modelfile
