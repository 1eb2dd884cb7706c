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
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Operand<T> a{in.as<const T>()};
  cudaStream_t stream = stream_of(context);
  auto operation = static_cast<Comparison>(told.operation);
  if (context.inputs.size() == 2) {
    const Buffer& other = context.inputs[1];
    return broadcast(Compared{operation}, stream, {a, Operand<T>{other.as<const T>()}},
                     out.as<Flag>(), BroadcastWalk(out.spec.shape, in.spec.shape, other.spec.shape),
                     out.elements());
  }
  if (told.number.position == NumberOperand::left) operation = exchanged(operation);
  Operand<T> b{nullptr, {}, true};
  if constexpr (std::is_integral_v<T>) {
    const AgainstNumber<T> against = against_integer<T>(operation, told.number.value);
    operation = against.operation;
    b.number = against.number;
  } else {
    b.number = static_cast<Accumulate<T>>(convert<T>(told.number.value));
  }
  return zip_flat(Compared{operation}, stream, a, b, out.as<Flag>(), out.elements());
}

}  // namespace

Status compare(const KernelContext& context) {
  return for_stored(context.inputs[0].spec.dtype,
                    [&]<class T>(T) { return compare_as<T>(context); });
}

}  // namespace ebb::cuda
