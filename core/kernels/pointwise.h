#pragma once
#include <span>
#include <type_traits>

#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The attributes of a pointwise operator of two operands, one of which may be a plain number.
struct NumberOperand {
  enum Position : std::int64_t { none, left, right };
  double value = 0;
  Position position = none;  // none: both operands are tensors (two inputs)
};

// The attributes of a kernel that does one of several operations: beside a NumberOperand the
// operation, as its place in its family's enumeration.
struct NumberAndOperation {
  NumberOperand number;
  std::int64_t operation = 0;
};

// The operands of a kernel that takes a NumberOperand: inputs, or null for the number. The second
// of a single operand is the first again.
struct TwoOperands {
  const Buffer *a, *b;

  TwoOperands(std::span<const Buffer> inputs, NumberOperand::Position number) noexcept
      : a(number == NumberOperand::left ? nullptr : &inputs.front()),
        b(number == NumberOperand::right ? nullptr : &inputs.back()) {}
};
// The shape of an operand, which is a scalar's for the number.
inline const Shape& shape_of(const Buffer* operand) noexcept {
  static constexpr Shape scalar;
  return operand == nullptr ? scalar : operand->spec.shape;
}

struct FillAttributes {
  double value = 0;
};

// The functor that a pointwise operator applies. A functor with parameters is the attributes.
template <class F>
F functor_of(const KernelContext& context) noexcept {
  if constexpr (std::is_empty_v<F>)
    return {};
  else
    return context.attribute<F>();
}

namespace cpu {
// out[i] = F()(in[i]); floating. out may be in.
template <class F>
Status map(const KernelContext&);
// out = F()(a, b) with NumPy's broadcasting, attributes NumberOperand. Floating. The number beside
// f16 and bf16 is a float, not rounded to them. out may be an input of out's own shape.
template <class F>
Status zip(const KernelContext&);
// out[i] = F()(a[i], b[i]), all of one shape; floating. out may be a or b.
template <class F>
Status pair(const KernelContext&);
// out[i] = value, attributes FillAttributes; every dtype. Inputs are ignored (fill_like).
Status fill(const KernelContext&);
// out = in, same dtype and number of elements. out may be in.
Status copy(const KernelContext&);
// out = a where the condition (input 0, bool) is true, else b, all three with NumPy's broadcasting;
// any dtype. Attributes NumberOperand: a or b may be a number, which is then no input. out may be
// an a or b of out's own shape.
Status where(const KernelContext&);
// out[i] = in[i] converted, by convert() of core/kernels/convert.h; between all dtypes.
Status cast(const KernelContext&);
}  // namespace cpu
// These kernels on a GPU.
namespace cuda {
template <class F>
Status map(const KernelContext&);
template <class F>
Status zip(const KernelContext&);
template <class F>
Status pair(const KernelContext&);
}  // namespace cuda
}  // namespace ebb
