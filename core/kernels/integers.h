#pragma once
#include <type_traits>

#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/kernels/functors/rounding.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb {

// The operations of the kernel `integers`, of two operands and of one. Sums, differences and
// products wrap around, and so do negating the least number and dividing it by -1. A division by 0
// gives 0, and so does its remainder, on every device, as in NumPy.
enum class IntegerOperation : std::int64_t {
  add,
  subtract,
  multiply,
  floor_divide,
  remainder,
  maximum,
  minimum,
  negate,  // of one operand, like the next ones
  abs,
  sign
};

// The operation on integers that a functor stands for.
template <class F>
extern const IntegerOperation kOfIntegers;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Add> = IntegerOperation::add;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Subtract> = IntegerOperation::subtract;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Multiply> = IntegerOperation::multiply;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::FloorDivide> =
    IntegerOperation::floor_divide;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Remainder> = IntegerOperation::remainder;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Maximum> = IntegerOperation::maximum;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Minimum> = IntegerOperation::minimum;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Negate> = IntegerOperation::negate;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Abs> = IntegerOperation::abs;
template <>
inline constexpr IntegerOperation kOfIntegers<functors::Sign> = IntegerOperation::sign;

// One operation on integers T, in unsigned numbers, which wrap around.
template <class T, IntegerOperation operation>
struct OnIntegers {
  EBB_HOST_DEVICE T operator()(T x, T y) const {
    // At least int, so that nothing is promoted to a signed type on the way.
    using U = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;
    [[maybe_unused]] const auto a = static_cast<U>(x), b = static_cast<U>(y);
    if constexpr (operation == IntegerOperation::add) {
      return static_cast<T>(a + b);
    } else if constexpr (operation == IntegerOperation::subtract) {
      return static_cast<T>(a - b);
    } else if constexpr (operation == IntegerOperation::multiply) {
      return static_cast<T>(a * b);
    } else if constexpr (operation == IntegerOperation::maximum) {
      return x > y ? x : y;
    } else if constexpr (operation == IntegerOperation::minimum) {
      return x < y ? x : y;
    } else if constexpr (operation == IntegerOperation::negate) {
      return static_cast<T>(U{} - a);
    } else if constexpr (operation == IntegerOperation::abs) {
      return is_negative(x) ? static_cast<T>(U{} - a) : x;
    } else if constexpr (operation == IntegerOperation::sign) {
      return static_cast<T>((x > T{} ? 1 : 0) - (is_negative(x) ? 1 : 0));
    } else {
      constexpr bool quotient = operation == IntegerOperation::floor_divide;
      if (y == T{}) return T{};
      if constexpr (std::is_signed_v<T>)
        if (y == T{-1}) return quotient ? static_cast<T>(U{} - a) : T{};  // the least overflows
      const T rest = static_cast<T>(x % y);
      const bool between = rest != T{} && is_negative(rest) != is_negative(y);
      if constexpr (quotient)
        return static_cast<T>(x / y - (between ? 1 : 0));
      else
        return static_cast<T>(between ? rest + y : rest);
    }
  }

 private:
  EBB_HOST_DEVICE static bool is_negative([[maybe_unused]] T x) {
    if constexpr (std::is_signed_v<T>)
      return x < T{};
    else
      return false;
  }
};

// Calls f(OnIntegers<T, operation>{}), on the host.
template <class T, class F>
auto with_operation(IntegerOperation operation, const F& f) {
  using enum IntegerOperation;
  switch (operation) {
    case add:
      return f(OnIntegers<T, add>());
    case subtract:
      return f(OnIntegers<T, subtract>());
    case multiply:
      return f(OnIntegers<T, multiply>());
    case floor_divide:
      return f(OnIntegers<T, floor_divide>());
    case remainder:
      return f(OnIntegers<T, remainder>());
    case maximum:
      return f(OnIntegers<T, maximum>());
    case minimum:
      return f(OnIntegers<T, minimum>());
    case negate:
      return f(OnIntegers<T, negate>());
    case abs:
      return f(OnIntegers<T, abs>());
    default:
      return f(OnIntegers<T, sign>());
  }
}

namespace detail {
inline Status run_on_integers(const KernelContext& context, IntegerOperation operation,
                              Kernel integers) noexcept {
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
Status map_number(const KernelContext& context) {
  if (is_floating(context.outputs[0].spec.dtype)) return map<F>(context);
  return ebb::detail::run_on_integers(context, kOfIntegers<F>, integers);
}
template <class F>
Status zip_number(const KernelContext& context) {
  if (is_floating(context.outputs[0].spec.dtype)) return zip<F>(context);
  return ebb::detail::run_on_integers(context, kOfIntegers<F>, integers);
}
}  // namespace cpu
// These kernels on a GPU.
namespace cuda {
KernelFunction integers;
template <class F>
Status map_number(const KernelContext& context) {
  if (is_floating(context.outputs[0].spec.dtype)) return map<F>(context);
  return ebb::detail::run_on_integers(context, kOfIntegers<F>, integers);
}
template <class F>
Status zip_number(const KernelContext& context) {
  if (is_floating(context.outputs[0].spec.dtype)) return zip<F>(context);
  return ebb::detail::run_on_integers(context, kOfIntegers<F>, integers);
}
}  // namespace cuda
}  // namespace ebb
