#include "ebb/kernels/cuda/product.h"

#include <cstdint>

namespace ebb::cuda {

namespace {
constexpr std::size_t kAligned = 16;  // cuBLASLt's fast algorithms read 16 bytes at a time
}  // namespace

Product::Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query)
    : shape_(shape), epilogue_(epilogue) {
  if (shape.is_empty()) return;
  aligned_ = find_product(shape, epilogue, query, kAligned);
  if (aligned_) any_ = find_product(shape, epilogue, query, size_of(shape.dtype));
}

Status Product::run(Stream* stream, const ProductOperands& operands,
                    bool& does_epilogue) const noexcept {
  const std::int64_t next = shape_.a_next | shape_.b_next | shape_.c_next;
  std::uintptr_t together = static_cast<std::uintptr_t>(next) * size_of(shape_.dtype);
  for (const void* data : {operands.a, operands.b, static_cast<const void*>(operands.c),
                           static_cast<const void*>(operands.vector)})
    together |= reinterpret_cast<std::uintptr_t>(data);
  if (LibraryProduct* const library = (together % kAligned == 0 ? aligned_ : any_).get()) {
    does_epilogue = library->has_epilogue();
    const Status status = library->run(stream, operands);
    if (!status.refused) return status;
  }
  does_epilogue = epilogue_ != Epilogue::none && epilogue_ != Epilogue::column_sums;
  return multiply_own(static_cast<DeviceStream*>(stream)->get(), shape_, epilogue_, operands);
}

std::size_t Product::bytes() const noexcept {
  return (aligned_ ? aligned_->bytes() : 0) + (any_ ? any_->bytes() : 0);
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
