#pragma once
#include <bit>
#include <cstring>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb {

// The bytes of a number as an element of the dtype, in the first bytes of a word.
inline std::uint64_t element_of(DType dtype, double number) noexcept {
  std::uint64_t word = 0;
  const auto put = [&](auto value) { std::memcpy(&word, &value, sizeof(value)); };
  switch (dtype) {
    case DType::f32:
      put(convert<float>(number));
      break;
    case DType::f64:
      put(number);
      break;
    case DType::f16:
      put(convert<Float16>(number));
      break;
    case DType::bf16:
      put(convert<BFloat16>(number));
      break;
    case DType::i32:
      put(convert<std::int32_t>(number));
      break;
    case DType::i64:
      put(convert<std::int64_t>(number));
      break;
    case DType::u8:
      put(convert<std::uint8_t>(number));
      break;
    case DType::boolean:
      put(convert<bool>(number));
      break;
  }
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
