#pragma once
#include <memory>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/gemm_own.h"

namespace ebb::cuda {

// A product by an algorithm of a library. run() takes its own workspace from the operands.
class LibraryProduct {
 public:
  // The library's numbers: algorithm, tile, and the number of parts that a sum is split into.
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
// Prepares a product of cuBLASLt: the first answer of its heuristic, without timing. With the
// epilogue if the dtype supports it. Null where the library has no algorithm for the shape, or is
// missing.
std::unique_ptr<LibraryProduct> find_product(const ProductShape& shape, Epilogue epilogue,
                                             const MemoryQuery& query, std::size_t alignment);

// A product of one shape, by a library if it can, else by multiply_own(). Either way the bits are
// the same every time.
class Product {
 public:
  // alignment: bytes, up to 16, that a, b and c are all promised to be aligned to. If an operand is
  // not, run() uses multiply_own().
  Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query,
          std::size_t alignment = 16);

  // Whether run() does the epilogue; otherwise the caller must.
  bool has_epilogue(const ProductOperands& operands) const noexcept {
    if (uses_library(operands)) return library_->has_epilogue();
    return epilogue_ != Epilogue::none && epilogue_ != Epilogue::column_sums;
  }
  Status run(Stream* stream, const ProductOperands& operands) const noexcept;
  // Whether the library computes it, provided that operands are aligned as promised.
  bool is_by_library() const noexcept { return library_ != nullptr || shape_.is_empty(); }
  // Bytes of host memory, beside the object.
  std::size_t bytes() const noexcept { return library_ == nullptr ? 0 : library_->bytes(); }

 private:
  bool uses_library(const ProductOperands& operands) const noexcept;

  ProductShape shape_;
  Epilogue epilogue_;
  std::size_t alignment_;
  std::unique_ptr<LibraryProduct> library_;
};

// An operator's prepared state: its products, in an order of its own.
class PreparedProducts final : public Prepared {
 public:
  std::size_t bytes() const noexcept override;
  const char* way() const noexcept override;

  std::vector<Product> products;
};

}  // namespace ebb::cuda
