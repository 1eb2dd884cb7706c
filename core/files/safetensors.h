#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/core/base/shape.h"
#include "ebb/core/files/input_file.h"

namespace ebb {

// The safetensors format (https://github.com/huggingface/safetensors): an 8-byte little-endian
// header length, a JSON header of names, dtypes, shapes and offsets, then the values, contiguous.
namespace safetensors {

using Metadata = std::map<std::string, std::string>;

struct View {
  std::string name;
  Spec spec;
  const void* values;  // spec.bytes() on the host
};

// Writes to a temporary file beside `file`, syncs it and renames it, so that a crash leaves the old
// file or the new one. Throws FileError with the file's name and the system's cause. Throws Error
// for an open shape, and for a name that is given twice, reserved or not UTF-8.
void write(const std::string& file, std::span<const View> tensors, const Metadata& metadata = {});

// Throws as write() would before its first byte, and writes nothing. Returns the header that the
// file would have.
std::string check_write(const std::string& file, std::span<const View> tensors,
                        const Metadata& metadata = {});

// Writes the index of tensors that lie in several files of one folder, as Hugging Face's: `file`
// with kIndexSuffix. `parts` are names of files by name of tensor. As a whole or not at all, as
// write().
void write_index(const std::string& file, const std::map<std::string, std::string>& parts,
                 std::uint64_t bytes);
inline constexpr std::string_view kIndexSuffix = ".index.json";

// An open file whose header is read and checked: sizes, offsets, overlaps, dtypes, duplicate names.
// Throws FileError that says what is damaged and where.
//
// Or several, where there is no `file` but its index: one list of the tensors and metadata of all.
class File {
 public:
  struct Entry {
    std::string name;
    Spec spec;
    std::uint64_t begin = 0;  // of the values, counted from the end of the header
    std::size_t part = 0;     // the file that they are in
  };

  explicit File(const std::string& file);
  // A file of which there is only the header, by check_write(): it has no values to read.
  static File of_header(const std::string& header);

  // In the order of the file's header.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Metadata& metadata() const noexcept { return metadata_; }
  // Null if there is no entry of that name.
  const Entry* find(const std::string& name) const noexcept;
  // The files that an index names.
  const std::vector<std::string>& parts() const noexcept { return parts_; }
  // Copies the values of entry `name`, spec.bytes() bytes. Throws FileError.
  void read(const std::string& name, void* values) const;
  // Copies `count` elements from the first-th on.
  void read(const std::string& name, void* values, std::int64_t first, std::int64_t count) const;

 private:
  File() = default;
  void open(const std::string& part);
  void open_parts(const std::string& index);
  // Returns the first problem; empty if there is none.
  std::string parse(std::string_view header);

  mutable std::optional<detail::InputFile> file_;  // the last part read; none: there is a header
  std::vector<std::string> parts_;
  std::vector<std::uint64_t> values_at_;  // offsets in the parts at which their values begin
  std::vector<Entry> entries_;
  Metadata metadata_;
  std::unordered_map<std::string, std::size_t> indices_;  // by name
};

}  // namespace safetensors
}  // namespace ebb
