#include <algorithm>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/linear_products.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {

MemoryNeeds matmul_memory(const MemoryQuery& query) {
  return {.workspace_bytes = product_bytes(matmul_product(query).shape, query.profile)};
}

MemoryNeeds dense_memory(const MemoryQuery& query) {
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  return {.workspace_bytes =
              product_bytes(forward_product(query.inputs[0].dtype, size), query.profile)};
}

// The products run one after the other in the same memory, as do the column sums where no product
// makes them.
MemoryNeeds dense_backward_memory(const MemoryQuery& query) {
  const DType dtype = query.inputs[0].dtype;
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  std::size_t bytes = 0;
  if (query.wants(0))
    bytes = std::max(bytes, product_bytes(input_product(dtype, size), query.profile));
  if (query.wants(1))
    bytes = std::max(bytes, product_bytes(weight_product(dtype, size), query.profile));
  if (query.wants(2)) bytes = std::max(bytes, column_sum_bytes(size.rows, size.out));
  return {.workspace_bytes = bytes};
}

}  // namespace ebb::cuda
