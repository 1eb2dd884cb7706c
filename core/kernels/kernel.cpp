#include "ebb/core/kernels/kernel.h"

#include "ebb/core/base/index_set.h"

namespace ebb {

std::int64_t detail::product(const Shape& shape, int begin, int end) noexcept {
  std::int64_t result = 1;
  bool is_open = false;
  for (int i = begin; i < end; ++i) {
    if (shape.dim(i) == 0) return 0;
    if (shape.dim(i) == kOpen)
      is_open = true;
    else
      result *= shape.dim(i);
  }
  return is_open ? kOpen : result;
}

bool KernelContext::destroys(std::size_t input) const noexcept {
  return destroyed && destroyed->has(input);
}

}  // namespace ebb
