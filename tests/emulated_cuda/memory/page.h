#pragma once
#include <cstddef>

namespace ebb::emulated {

inline constexpr std::size_t kPage = 64 << 10;  // a multiple of every host's
// New memory is filled with NaN up to here. Touching more would take host memory that no test uses.
inline constexpr std::size_t kFilledBytes = std::size_t{32} << 20;

}  // namespace ebb::emulated
