// Moves memory of any dtype in words as wide as its addresses and sizes allow.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// Calls f with the widest word of 16, 8, 4, 2 or 1 bytes that divides `unit`, the bytes moved as a
// whole, and that all addresses are aligned to.
template <class F>
Status with_words(std::size_t unit, std::initializer_list<const void*> addresses,
                  const F& f) noexcept {
  std::uintptr_t bits = unit;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  if (bits % 16 == 0) return f(int4{});
  if (bits % 8 == 0) return f(std::uint64_t{});
  if (bits % 4 == 0) return f(std::uint32_t{});
  if (bits % 2 == 0) return f(std::uint16_t{});
  return f(std::uint8_t{});
}

}  // namespace ebb::cuda
