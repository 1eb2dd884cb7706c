#pragma once
#include <memory>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/product_memory.h"
#include "ebb/kernels/cuda/stream.h"

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
// Prepares a product of cuBLASLt: the first answers of its heuristic, without timing. With the
// epilogue if the dtype supports it. Null where the library has no algorithm for the shape, or is
// missing. `alignment`: bytes that a, b, c and the vector are all promised to be aligned to.
std::unique_ptr<LibraryProduct> find_product(const ProductShape& shape, Epilogue epilogue,
                                             const MemoryQuery& query, std::size_t alignment);

// A product of one shape, by a library if it can, else by multiply_own(). Either way the bits are
// the same every time.
class Product {
 public:
  Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query);

  // Sets `does_epilogue`; where it is false the caller must do the epilogue.
  Status run(Stream* stream, const ProductOperands& operands, bool& does_epilogue) const noexcept;
  Status run(Stream* stream, const ProductOperands& operands) const noexcept {
    bool none = false;
    return run(stream, operands, none);
  }
  // Whether the library computes it, unless it refuses when it is asked to.
  bool is_by_library() const noexcept { return aligned_ != nullptr || shape_.is_empty(); }
  // Bytes of host memory, beside the object.
  std::size_t bytes() const noexcept;

 private:
  ProductShape shape_;
  Epilogue epilogue_;
  std::unique_ptr<LibraryProduct> aligned_, any_;  // for operands aligned to 16 bytes, and for all
};

// An operator's prepared state: its products, in an order of its own.
class PreparedProducts final : public Prepared {
 public:
  std::size_t bytes() const noexcept override;
  const char* way() const noexcept override;

  std::vector<Product> products;
};

}  // namespace ebb::cuda
