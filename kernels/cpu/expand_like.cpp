#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cpu/broadcast.h"
#include "ebb/kernels/cpu/dispatch.h"

namespace ebb::cpu {

Status expand_like(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return for_stored(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const Computed<T> one = 1;
    broadcast(functors::Multiply(), in.as<const T>(), in.spec.shape, &one, Shape(), out.as<T>(),
              out.spec.shape);
  });
}

}  // namespace ebb::cpu
