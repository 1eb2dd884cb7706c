#pragma once
#include <memory>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/gemm_own.h"

namespace ebb::cuda {

// A product by an algorithm of a library. run() is told where its own workspace begins.
class LibraryProduct {
 public:
  // Numbers of the library's own: algorithm and tile, and into how many parts a sum is split.
  struct Choice {
    int algorithm = 0, tile = 0, split = 0;
    std::size_t workspace_bytes = 0;
  };
  virtual ~LibraryProduct() = default;
  virtual Choice choice() const noexcept = 0;
  virtual bool has_epilogue() const noexcept = 0;
  virtual std::size_t bytes() const noexcept = 0;  // of host memory
  virtual Status run(Stream* stream, const ProductOperands& operands) noexcept = 0;
};
// By cuBLASLt: the first answer of its heuristic, nothing is timed. With the epilogue if it has one
// for the dtype. Null where it has no algorithm for the shape, or is not there.
std::unique_ptr<LibraryProduct> find_product(const ProductShape& shape, Epilogue epilogue,
                                             const MemoryQuery& query, std::size_t alignment);

// A product of one shape, by a library where it can, else by multiply_own(). Either way the same
// bits every time.
class Product {
 public:
  // alignment: what all of a, b and c are promised to be aligned to, in bytes, up to 16; where one
  // is not after all, multiply_own() is used.
  Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query,
          std::size_t alignment = 16);

  // Whether run() does the epilogue; otherwise it is left to the caller.
  bool has_epilogue(const ProductOperands& operands) const noexcept {
    if (uses_library(operands)) return library_->has_epilogue();
    return epilogue_ != Epilogue::none && epilogue_ != Epilogue::column_sums;
  }
  Status run(Stream* stream, const ProductOperands& operands) const noexcept;
  // Where all operands are aligned as was promised.
  bool is_by_library() const noexcept { return library_ != nullptr || shape_.is_empty(); }
  // Of host memory, beside the object.
  std::size_t bytes() const noexcept { return library_ == nullptr ? 0 : library_->bytes(); }

 private:
  bool uses_library(const ProductOperands& operands) const noexcept;

  ProductShape shape_;
  Epilogue epilogue_;
  std::size_t alignment_;
  std::unique_ptr<LibraryProduct> library_;
};

// What an operator prepares: the products that it consists of, in an order of its own.
class PreparedProducts final : public Prepared {
 public:
  std::size_t bytes() const noexcept override;
  const char* way() const noexcept override;

  std::vector<Product> products;
};

}  // namespace ebb::cuda
