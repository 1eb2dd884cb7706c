#include "ebb/core/kernels/integers.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
Status integers(const KernelContext& context) {
  const auto& told = context.attribute<NumberAndOperation>();
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return broadcast_two<T, T>(OnIntegers<T>{IntegerOperation{told.operation}}, context,
                               told.number.position, convert<T>(told.number.value));
  });
}

}  // namespace ebb::cuda
