#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/files/input_file.h"
#include "ebb/core/files/safetensors.h"

namespace ebb::safetensors::detail {

// The most bytes a header may have, as in the reference implementation.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
// The values begin at a multiple of this.
inline constexpr std::uint64_t kAlignment = 8;
inline constexpr std::uint64_t kLengthBytes = 8;
inline constexpr const char* kMetadataName = "__metadata__";

// Where the values of a tensor lie: [begin, end) in the part of the file behind the header.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<File::Entry> entries;  // as the file names them
  std::vector<Extent> extents;       // by entry
  Metadata metadata;
  std::uint64_t values_at = 0;  // where in the file the values begin
};

// Reads and checks it all: when this returns, the extents cover the rest of the file exactly, none
// overlaps another, and each has the bytes its shape and dtype call for. Throws FileError.
Header read_header(const ebb::detail::InputFile& file);

// The first bytes of a file with these tensors, length included, padded to kAlignment. Throws Error
// for a name that is given twice, reserved or no UTF-8, and for more than the format holds.
std::string make_header(std::span<const View> tensors, std::span<const Extent> extents,
                        const Metadata& metadata);

}  // namespace ebb::safetensors::detail
