#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "ebb/core/base/no_copy.h"

namespace ebb::detail {

// The lowest bytes of a number, the last one first.
std::string little_endian(std::uint64_t number, std::size_t bytes);

// A file that is open for writing.
class WritableFile : NoCopy {
 public:
  // Throws FileError with the system's cause.
  void write(const void* from, std::size_t bytes);

 protected:
  explicit WritableFile(std::string name) : name_(std::move(name)) {}
  ~WritableFile();
  // Throws FileError, also for an error of an earlier write.
  void close();
  [[noreturn]] void fail(const char* what) const;

  const std::string name_;
  int descriptor_ = -1;
};

// A file that appears as a whole or not at all. It is written under another name in the same
// folder, then synced and renamed. On any failure before commit() returns, the old file stays as it
// was and the new one is removed. If `name` is a link, the file it leads to is replaced.
class OutputFile : public WritableFile {
 public:
  // Throws FileError with the system's cause; also if `name` exists and is not a regular file.
  explicit OutputFile(std::string name);
  ~OutputFile();

  // Moves to `offset` for the next write. Throws FileError.
  void seek(std::uint64_t offset);
  // Puts the file in place; no write may follow. Throws FileError.
  void commit();
  // Throws as the constructor would, but makes no file.
  static void check(const std::string& name);

 private:
  const std::string target_;  // behind the links of the name
  std::string temporary_;
};

// A temporary file for this process only: written in place and not synced.
class ScratchFile : public WritableFile {
 public:
  // Throws FileError with the system's cause; also if `name` exists.
  explicit ScratchFile(std::string name);
  using WritableFile::close;
};

}  // namespace ebb::detail
