#include "ebb/kernels/cuda/product.h"

#include <cstdint>

#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

Product::Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query,
                 std::size_t alignment)
    : shape_(shape), epilogue_(epilogue), alignment_(alignment) {
  if (!shape.is_empty()) library_ = find_product(shape, epilogue, query, alignment);
}

bool Product::uses_library(const ProductOperands& operands) const noexcept {
  if (library_ == nullptr) return false;
  std::uintptr_t together = 0;
  for (const void* data : {operands.a, operands.b, static_cast<const void*>(operands.c),
                           static_cast<const void*>(operands.vector)})
    together |= reinterpret_cast<std::uintptr_t>(data);
  return together % alignment_ == 0;
}

Status Product::run(Stream* stream, const ProductOperands& operands) const noexcept {
  if (uses_library(operands)) return library_->run(stream, operands);
  return multiply_own(static_cast<DeviceStream*>(stream)->get(), shape_, epilogue_, operands);
}

std::size_t PreparedProducts::bytes() const noexcept {
  std::size_t bytes = sizeof(*this) + products.capacity() * sizeof(Product);
  for (const Product& product : products) bytes += product.bytes();
  return bytes;
}

const char* PreparedProducts::way() const noexcept {
  for (const Product& product : products)
    if (!product.is_by_library()) return "by ebb's own product";
  return "by cuBLASLt";
}

}  // namespace ebb::cuda
