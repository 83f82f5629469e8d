#include "record/append_file.h"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

namespace tokenstone::record {
namespace {

std::string reason() { return std::generic_category().message(errno); }

std::string write_error(const std::string& path) {
  if (errno == ENOSPC)
    return fmt::format("the disk is full: {} could not be written; free some space or name another --run-dir", path);
  return fmt::format("cannot write {}: {}", path, reason());
}

}  // namespace

Result<AppendFile> AppendFile::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return usage_error(
        fmt::format("cannot create {}: {}; name a folder that can be written with --run-dir", path, reason()));
  std::setvbuf(file, nullptr, _IONBF, 0);  // the buffer above is the only one
  return AppendFile(path, file);
}

Status AppendFile::flush() {
  if (!error_.empty()) return fail(ErrorKind::interrupted, error_);
  if (buffer_.empty()) return {};
  errno = 0;
  const std::size_t written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get());
  if (written != buffer_.size()) {
    error_ = write_error(path_);
    return fail(ErrorKind::interrupted, error_);
  }
  buffer_.clear();
  return {};
}

Status AppendFile::maybe_flush(TimeNs now) {
  if (last_flush_ != kUnknownTime && now - last_flush_ < kFlushInterval) return {};
  last_flush_ = now;
  return flush();
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  const std::string part = path + ".part";
  TS_TRY(AppendFile file, AppendFile::create(part));
  file.append(text);
  TS_TRY_STATUS(file.flush());
  if (std::rename(part.c_str(), path.c_str()) != 0) return fail(ErrorKind::interrupted, write_error(path));
  return {};
}

Result<std::string> read_whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || in.bad()) return fail(ErrorKind::usage, fmt::format("cannot read {}: {}", path, reason()));
  return std::move(text).str();
}

}  // namespace tokenstone::record
