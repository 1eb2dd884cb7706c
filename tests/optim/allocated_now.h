#pragma once
#include "ebb/core/memory/memory.h"

namespace ebb::tests {

inline std::size_t allocated_now() { return memory::stats(Device::cpu()).allocated.current; }

}  // namespace ebb::tests
