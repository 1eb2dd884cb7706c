#include "ebb/core/kernels/kernel.h"

#include "ebb/core/base/index_set.h"

namespace ebb {

std::int64_t detail::product(const Shape& shape) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : shape.dims()) product *= size;
  return product;
}

bool KernelContext::destroys(std::size_t input) const noexcept {
  return destroyed && destroyed->has(input);
}

}  // namespace ebb
