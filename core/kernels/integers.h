#pragma once
#include <cstddef>
#include <type_traits>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/kernels/functors/on_integers.h"
#include "ebb/core/kernels/functors/rounding.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb {

// The operations that the kernel compiles.
inline constexpr std::size_t kIntegerOperations =
    static_cast<std::size_t>(IntegerOperation::sign) + 1;

namespace detail {
template <class... Functors>
struct IntegerFunctors {
  template <class F>
  static constexpr IntegerOperation operation_of() {
    constexpr bool is_it[] = {std::is_same_v<F, Functors>...};
    std::size_t place = 0;
    while (!is_it[place]) ++place;
    return static_cast<IntegerOperation>(place);
  }
};
// The functors that stand for the operations, in their order.
using AllIntegerFunctors =
    IntegerFunctors<functors::Add, functors::Subtract, functors::Multiply, functors::FloorDivide,
                    functors::Remainder, functors::Maximum, functors::Minimum, functors::Negate,
                    functors::Abs, functors::Sign>;

// The kernel of an operator of floating numbers that takes integers as well.
template <class F, Kernel floating, Kernel integers>
Status run_on_numbers(const KernelContext& context) {
  if (is_floating(context.outputs[0].spec.dtype)) return floating(context);
  constexpr IntegerOperation operation = AllIntegerFunctors::operation_of<F>();
  const Attributes told =
      NumberAndOperation{context.attribute<NumberOperand>(), static_cast<std::int64_t>(operation)};
  KernelContext with = context;
  with.attributes = &told;
  return integers(with);
}
}  // namespace detail

namespace cpu {
// out = a operation b with NumPy's broadcasting, attributes NumberAndOperation, on i32, i64 and u8:
// two tensors, or a tensor and a number that its dtype has. With one operand: out[i] =
// operation(in[i]). out may be an input of out's own shape.
Status integers(const KernelContext&);
// map and zip that take integers as well.
template <class F>
inline constexpr Kernel map_number = ebb::detail::run_on_numbers<F, map<F>, integers>;
template <class F>
inline constexpr Kernel zip_number = ebb::detail::run_on_numbers<F, zip<F>, integers>;
}  // namespace cpu
// These kernels on a GPU.
namespace cuda {
template <class F>
inline constexpr Kernel map_number = ebb::detail::run_on_numbers<F, map<F>, integers>;
template <class F>
inline constexpr Kernel zip_number = ebb::detail::run_on_numbers<F, zip<F>, integers>;
}  // namespace cuda
}  // namespace ebb
