// How many handles and descriptors of the emulated libraries there are.
#pragma once
#include <atomic>
#include <cstdint>

namespace ebb::emulated {

inline std::atomic<std::uint64_t> library_objects = 0;

}  // namespace ebb::emulated
