#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/files/input_file.h"
#include "ebb/core/files/output_file.h"

// ZIP archives of uncompressed files (PKWARE's APPNOTE.TXT 6.3), in the ZIP64 form where it is
// needed.
namespace ebb::detail {

// A file in an archive: its bytes are [begin, end) of the archive's.
struct ZipEntry {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t crc = 0;
};

// Reads and checks the directory: entries lie within the archive, one behind the other, and have
// the names that they say themselves. Throws FileError, also for compressed and encrypted ones.
std::vector<ZipEntry> read_zip_directory(const InputFile& file);

// Throws FileError where an entry's bytes are not those of its checksum.
void check_zip_entry(const InputFile& file, const ZipEntry& entry);

// Writes an archive of any size: every entry is in the ZIP64 form.
class ZipWriter {
 public:
  // Throws FileError.
  explicit ZipWriter(const std::string& file) : file_(file) {}
  struct Part {
    const void* bytes;
    std::size_t count;
  };
  // An entry of these parts, one behind the other. Throws FileError.
  void add(std::string_view name, std::initializer_list<Part> parts);
  // Throws FileError. Nothing is added afterwards.
  void commit();

 private:
  OutputFile file_;
  std::uint64_t at_ = 0;
  std::uint64_t entries_ = 0;
  std::string directory_;
};

}  // namespace ebb::detail
