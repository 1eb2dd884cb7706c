#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/plans/product_memory.h"

namespace ebb::cuda {

// What is done with a product on the way: a bias [n] is added to its rows, max(0, .) is taken of
// it; or the column sums [n] of op(b) are made beside it.
enum class Epilogue : unsigned char { none, bias, relu, bias_relu, column_sums };

struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* vector = nullptr;  // the epilogue's bias or column sums
  bool accumulate = false;
  void* workspace = nullptr;  // of product_bytes()
};

// The product by a kernel of ebb's own, for every shape and alignment: where cuBLASLt has none or
// is not there. With k = 0 the sums are zeros. It makes every epilogue but column sums.
Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept;

}  // namespace ebb::cuda
