#include "ebb/core/kernels/integers.h"

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

}  // namespace

Status integers(const KernelContext& context) {
  const auto& told = context.attribute<NumberAndOperation>();
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return broadcast_two<T, T>(OfTwo<T>{IntegerOperation{told.operation}}, context,
                               told.number.position, convert<T>(told.number.value));
  });
}

}  // namespace ebb::cuda
