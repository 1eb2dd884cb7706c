#pragma once
#include <cstring>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb {

// The bytes of a number as an element of the dtype, in the first bytes of a word.
inline std::uint64_t element_of(DType dtype, double number) noexcept {
  std::uint64_t word = 0;
  with_type_of(dtype, [&](auto type) {
    const auto element = convert<decltype(type)>(number);
    std::memcpy(&word, &element, sizeof(element));
  });
  return word;
}

namespace cpu {
// out = a where the condition (input 0, bool) is true, else b, all three with NumPy's broadcasting;
// any dtype. Attributes NumberOperand: a or b may be a number, which is then no input. out may be
// an a or b of out's own shape.
Status where(const KernelContext&);
}  // namespace cpu
// These kernels on a GPU.
namespace cuda {
KernelFunction where;
}  // namespace cuda
}  // namespace ebb
