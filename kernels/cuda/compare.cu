#include "ebb/core/kernels/compare.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

// A bool, stored as 0 or 1.
using Flag = std::uint8_t;

struct Compared {
  Comparison operation;

  template <class A>
  __device__ bool operator()(A x, A y) const {
    switch (operation) {
      case Comparison::equal:
        return x == y;
      case Comparison::not_equal:
        return x != y;
      case Comparison::less:
        return x < y;
      case Comparison::less_equal:
        return x <= y;
      case Comparison::greater:
        return x > y;
      case Comparison::greater_equal:
        return x >= y;
      default:
        break;
    }
    if constexpr (std::is_floating_point_v<A>) {
      if (operation == Comparison::is_nan) return x != x;
      const A size = x < A{} ? -x : x;
      constexpr A kInfinity = std::numeric_limits<A>::infinity();
      return operation == Comparison::is_inf ? size == kInfinity : size < kInfinity;
    } else {
      return operation == Comparison::both ? (x & y) != 0 : (x | y) != 0;
    }
  }
};

template <class T>
Status compare_as(const KernelContext& context) noexcept {
  const auto& told = context.attribute<NumberAndOperation>();
  auto operation = static_cast<Comparison>(told.operation);
  if (told.number.position == NumberOperand::none)
    return broadcast_two<T, Flag>(Compared{operation}, context, NumberOperand::none, {});
  if (told.number.position == NumberOperand::left) operation = exchanged(operation);
  Accumulate<T> number = {};
  if constexpr (std::is_integral_v<T>) {
    const AgainstNumber<T> against = against_integer<T>(operation, told.number.value);
    operation = against.operation;
    number = against.number;
  } else {
    number = static_cast<Accumulate<T>>(convert<T>(told.number.value));
  }
  return broadcast_two<T, Flag>(Compared{operation}, context, NumberOperand::right, number);
}

}  // namespace

Status compare(const KernelContext& context) {
  return for_stored(context.inputs[0].spec.dtype,
                    [&]<class T>(T) { return compare_as<T>(context); });
}

}  // namespace ebb::cuda
