#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "ebb/core/base/no_copy.h"

namespace ebb::detail {

// The lowest bytes of a number, the last one first.
std::string little_endian(std::uint64_t number, std::size_t bytes);

// A file that appears as a whole or not at all. It is written under another name in the same
// folder, then synced and renamed. On any failure before commit() returns, the old file stays as it
// was and the new one is removed. If `name` is a link, the file it leads to is replaced.
class OutputFile : NoCopy {
 public:
  // Throws FileError with the system's cause; also if `name` exists and is not a regular file.
  explicit OutputFile(std::string name);
  ~OutputFile();

  // Throws FileError.
  void write(const void* from, std::size_t bytes);
  // Moves to `offset` for the next write. Throws FileError.
  void seek(std::uint64_t offset);
  // Puts the file in place; no write may follow. Throws FileError.
  void commit();
  // Throws as the constructor would, but makes no file.
  static void check(const std::string& name);

 private:
  [[noreturn]] void fail(const char* what) const;

  const std::string name_, target_;  // as given, and behind its links
  std::string temporary_;
  int descriptor_ = -1;
};

// A temporary file for this process only: written in place and not synced.
class ScratchFile : NoCopy {
 public:
  // Throws FileError with the system's cause; also if `name` exists.
  explicit ScratchFile(std::string name);
  ~ScratchFile();

  // These throw FileError.
  void write(const void* from, std::size_t bytes);
  void close();

 private:
  const std::string name_;
  int descriptor_ = -1;
};

}  // namespace ebb::detail
