#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/files/input_file.h"
#include "ebb/core/files/safetensors.h"

namespace ebb::safetensors::detail {

// Maximum bytes of a header, as in the reference implementation.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
// The values begin at a multiple of this.
inline constexpr std::uint64_t kAlignment = 8;
inline constexpr std::uint64_t kLengthBytes = 8;
inline constexpr const char* kMetadataName = "__metadata__";

// Place of a tensor's values: [begin, end), counted from the end of the header.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<File::Entry> entries;  // in the order of the file
  std::vector<Extent> extents;       // in the order of `entries`
  Metadata metadata;
  std::uint64_t values_at = 0;  // offset in the file at which the values begin
};

// Reads and checks the whole header. The returned extents cover the rest of the file exactly, none
// overlaps another, and each has the bytes that its shape and dtype call for. Throws FileError.
Header read_header(const ebb::detail::InputFile& file);

// Builds the start of a file with these tensors: length and header, padded to kAlignment. Throws
// Error for a name that is given twice, reserved or not UTF-8, and for more than the format holds.
std::string make_header(std::span<const View> tensors, std::span<const Extent> extents,
                        const Metadata& metadata);

}  // namespace ebb::safetensors::detail
