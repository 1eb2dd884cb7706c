#pragma once
#include <cmath>
#include <limits>

#include "ebb/core/kernels/pointwise.h"

namespace ebb {

// The operations of the kernel `compare`, of two operands and of one.
enum class Comparison : std::int64_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  both,    // bool
  either,  // bool
  is_nan,  // of one floating operand, like the next two
  is_inf,
  is_finite
};

// The comparison that holds for exchanged operands.
constexpr Comparison exchanged(Comparison operation) noexcept {
  switch (operation) {
    case Comparison::less:
      return Comparison::greater;
    case Comparison::less_equal:
      return Comparison::greater_equal;
    case Comparison::greater:
      return Comparison::less;
    case Comparison::greater_equal:
      return Comparison::less_equal;
    default:
      return operation;
  }
}

// A comparison with a number of the tensor's own type T.
template <class T>
struct AgainstNumber {
  Comparison operation;
  T number;
};

// A comparison in T that equals `x operation number` of real numbers for every integer x. 2.5 lies
// between 2 and 3, and a number out of T's range beyond all of T.
template <class T>
AgainstNumber<T> against_integer(Comparison operation, double number) noexcept {
  constexpr T least = std::numeric_limits<T>::min();
  constexpr double low = static_cast<double>(least);
  constexpr double end = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  const AgainstNumber<T> never{Comparison::less, least}, always{Comparison::greater_equal, least};
  const bool whole = std::floor(number) == number && number >= low && number < end;
  if (operation == Comparison::equal)
    return whole ? AgainstNumber<T>{operation, static_cast<T>(number)} : never;
  if (operation == Comparison::not_equal)
    return whole ? AgainstNumber<T>{operation, static_cast<T>(number)} : always;
  if (number != number) return never;
  // x < 2.5 is x < 3, and x <= 2.5 is x <= 2.
  const bool to_above = operation == Comparison::less || operation == Comparison::greater_equal;
  const double bound = to_above ? std::ceil(number) : std::floor(number);
  const bool wants_less = operation == Comparison::less || operation == Comparison::less_equal;
  if (bound >= end) return wants_less ? always : never;
  if (bound < low) return wants_less ? never : always;
  return {operation, static_cast<T>(bound)};
}

namespace cpu {
// out (bool) = a operation b with NumPy's broadcasting, attributes NumberAndOperation: two tensors
// of one dtype, or a tensor and a number. Every dtype. The number is rounded to the tensor's dtype,
// 16 bits too; beside integers it is compared as it is. With one operand: out[i] =
// operation(in[i]).
Status compare(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
