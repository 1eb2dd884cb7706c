#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Running sums along an axis, from the front.
struct CumsumAttributes {
  std::int32_t axis = 0;
  std::uint8_t exclusive = 0;  // without the element itself
  std::uint8_t reverse = 0;    // from the end
  std::uint8_t reserved[2] = {};
};

namespace cpu {
// out = the running sums of in; floating, added up in double and rounded once each, or i32 and i64,
// which wrap around.
Status cumsum(const KernelContext&);
}  // namespace cpu
// The same, on a GPU.
namespace cuda {
KernelFunction cumsum;
}  // namespace cuda
}  // namespace ebb
