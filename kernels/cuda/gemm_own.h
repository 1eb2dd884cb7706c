#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/plans/product_memory.h"

namespace ebb::cuda {

// Work done along with a product: adds a bias [n] to its rows, takes max(0, .) of it, or makes the
// column sums [n] of op(b) beside it.
enum class Epilogue : unsigned char { none, bias, relu, bias_relu, column_sums };

struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* vector = nullptr;  // the epilogue's bias or column sums
  bool accumulate = false;
  void* workspace = nullptr;  // of product_bytes()
};

// Computes the product by ebb's own kernel, for every shape and alignment: used where cuBLASLt has
// no algorithm or is missing. With k = 0 the sums are zeros. Makes every epilogue but column sums.
Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept;

}  // namespace ebb::cuda
