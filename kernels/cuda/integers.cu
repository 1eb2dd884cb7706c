#include "ebb/core/kernels/integers.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

template <class T>
Status run(const KernelContext& context) noexcept {
  const auto& told = context.attribute<NumberAndOperation>();
  const Buffer& out = context.outputs[0];
  const auto [a, b] = TwoOperands(context.inputs, told.number.position);
  const auto operand = [&](const Buffer* of) -> Operand<T> {
    if (of == nullptr) return {nullptr, convert<T>(told.number.value), true};
    return {of->as<const T>()};
  };
  return broadcast(OnIntegers<T>{IntegerOperation{told.operation}}, stream_of(context),
                   {operand(a), operand(b)}, out.as<T>(),
                   BroadcastWalk(out.spec.shape, shape_of(a), shape_of(b)), out.elements());
}

}  // namespace

Status integers(const KernelContext& context) {
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) { return run<T>(context); });
}

}  // namespace ebb::cuda
