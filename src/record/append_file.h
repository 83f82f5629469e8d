// A file that only grows: what a killed run leaves behind. Bytes gather in memory and go to the system at `flush`, so
// nothing waits for the disk on the measured path.
//
// Ownership: the object owns the open file. Threads: one at a time (StepCsvWriter adds its own lock). Units: `now` in
// ns of any steady clock. Failure: a Status; the first write error (disk full: ErrorKind::interrupted) is kept and
// returned ever after.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace tokenstone::record {

class AppendFile {
 public:
  /// Makes the file, or empties it.
  static Result<AppendFile> create(const std::string& path);

  void append(std::string_view bytes) { buffer_ += bytes; }
  /// Hands everything to the system.
  Status flush();
  /// Flushes when the last flush is at least `kFlushInterval` ago.
  Status maybe_flush(TimeNs now);
  const std::string& path() const { return path_; }

  static constexpr TimeNs kFlushInterval = kSecond / 2;

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  AppendFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::string buffer_;
  TimeNs last_flush_ = kUnknownTime;
  std::string error_;
};

/// Writes the whole text beside the path and renames it, so that a reader never sees half a file.
Status write_file_atomically(const std::string& path, std::string_view text);
/// The whole file; an error that names it when it cannot be read.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace tokenstone::record
