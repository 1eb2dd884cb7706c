#pragma once
#include <cublasLt.h>

#include <vector>

#include "ebb/core/kernels/kernel.h"
#include "ebb/kernels/cuda/host/product_memory.h"

namespace ebb::cuda {

// What is done with a product on the way: to its rows a bias [n] is added, max(0, .) is taken of
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

// A product of one shape: by cuBLASLt where its heuristic has an algorithm for it, which nothing is
// timed for, else by multiply_own(). Either way the same bits every time.
class Product {
 public:
  // alignment: what all of a, b and c are promised to be aligned to, in bytes, up to 16; where one
  // is not after all, multiply_own() is used.
  Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query,
          std::size_t alignment = 16);
  Product(Product&& other) noexcept;
  Product& operator=(Product&&) = delete;
  ~Product();

  // Whether run() does the epilogue; otherwise it is left to the caller.
  bool has_epilogue(const ProductOperands& operands) const noexcept {
    return fuses_ && uses_library(operands);
  }
  Status run(Stream* stream, const ProductOperands& operands) const noexcept;

 private:
  bool uses_library(const ProductOperands& operands) const noexcept;
  bool choose(cublasLtHandle_t handle, Epilogue epilogue, std::size_t limit);

  ProductShape shape_;
  std::size_t alignment_;
  std::size_t workspace_bytes_ = 0;  // that the algorithm uses
  bool fuses_ = false;
  // Null where there is no algorithm. What run() sets in it, the addresses of vectors, is copied
  // when a product is captured.
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

// What the operators of linear.h prepare: the products that they consist of, in an order of theirs.
class PreparedProducts final : public Prepared {
 public:
  std::size_t bytes() const noexcept override;

  std::vector<Product> products;
};

}  // namespace ebb::cuda
