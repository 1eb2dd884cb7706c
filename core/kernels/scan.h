#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Running sums along an axis, from the front, or running products.
struct ScanAttributes {
  std::int32_t axis = 0;
  std::uint8_t exclusive = 0;  // without the element itself
  std::uint8_t reverse = 0;    // from the end
  std::uint8_t product = 0;
  std::uint8_t reserved = 0;
};

namespace cpu {
// out = the running sums or products of in; floating, in double and rounded once each, or i32 and
// i64, which wrap around.
Status scan(const KernelContext&);
}  // namespace cpu
// The same, on a GPU, where a long row is put together from parts.
namespace cuda {
KernelFunction scan;
}  // namespace cuda
}  // namespace ebb
