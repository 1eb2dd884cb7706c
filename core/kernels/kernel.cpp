#include "ebb/core/kernels/kernel.h"

namespace ebb {

std::int64_t detail::product(const Shape& shape) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : shape.dims()) product *= size;
  return product;
}

}  // namespace ebb
