#pragma once
#include <cstddef>

namespace ebb::emulated {

inline constexpr std::size_t kPage = 64 << 10;  // a multiple of every host's
// New memory holds NaNs up to here: to touch more would take the host's memory for what no test
// writes.
inline constexpr std::size_t kFilledBytes = std::size_t{32} << 20;

}  // namespace ebb::emulated
