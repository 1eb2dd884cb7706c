#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace ebb::detail {

// A file that appears whole or not at all: it is written under another name in the same folder,
// then synced and renamed. Whatever happens before commit() returns, the old file stays as it was
// and the other name goes. Where `name` is a link, that is what it leads to.
class OutputFile {
 public:
  // Throws FileError with the system's cause; also where `name` is there and no regular file.
  explicit OutputFile(std::string name);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Throws FileError.
  void write(const void* from, std::size_t bytes);
  // The next byte is written there. Throws FileError.
  void seek(std::uint64_t offset);
  // Throws FileError. Nothing is written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  const std::string name_, target_;  // as it was given, and behind its links
  std::string temporary_;
  int descriptor_ = -1;
};

// A file that nobody else is meant to read or keep: written in place, and not synced.
class ScratchFile {
 public:
  // Throws FileError with the system's cause; also where `name` is there.
  explicit ScratchFile(std::string name);
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  // These throw FileError.
  void write(const void* from, std::size_t bytes);
  void close();

 private:
  const std::string name_;
  int descriptor_ = -1;
};

}  // namespace ebb::detail
