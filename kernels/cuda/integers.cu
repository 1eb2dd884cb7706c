#include "ebb/core/kernels/integers.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

template <class T>
struct OfTwo {
  IntegerOperation operation;

  __device__ T operator()(T x, T y) const {
    using enum IntegerOperation;
    switch (operation) {
      case add:
        return OnIntegers<T, add>()(x, y);
      case subtract:
        return OnIntegers<T, subtract>()(x, y);
      case multiply:
        return OnIntegers<T, multiply>()(x, y);
      case floor_divide:
        return OnIntegers<T, floor_divide>()(x, y);
      case remainder:
        return OnIntegers<T, remainder>()(x, y);
      case maximum:
        return OnIntegers<T, maximum>()(x, y);
      case minimum:
        return OnIntegers<T, minimum>()(x, y);
      case negate:
        return OnIntegers<T, negate>()(x, y);
      case abs:
        return OnIntegers<T, abs>()(x, y);
      default:
        return OnIntegers<T, sign>()(x, y);
    }
  }
};

template <class T>
Status run(const KernelContext& context) noexcept {
  const auto& told = context.attribute<NumberAndOperation>();
  const NumberOperand& number = told.number;
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  Operand<T> a{in.as<const T>()}, b = a;
  const Operand<T> value{nullptr, convert<T>(number.value), true};
  const Shape one;
  const Shape *shape_a = &in.spec.shape, *shape_b = shape_a;
  if (context.inputs.size() == 2) {
    b.data = context.inputs[1].as<const T>();
    shape_b = &context.inputs[1].spec.shape;
  } else if (number.position == NumberOperand::left) {
    a = value;
    shape_a = &one;
  } else if (number.position == NumberOperand::right) {
    b = value;
    shape_b = &one;
  }
  return broadcast(OfTwo<T>{IntegerOperation{told.operation}}, stream_of(context), {a, b},
                   out.as<T>(), BroadcastWalk(out.spec.shape, *shape_a, *shape_b), out.elements());
}

}  // namespace

Status integers(const KernelContext& context) {
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) { return run<T>(context); });
}

}  // namespace ebb::cuda
