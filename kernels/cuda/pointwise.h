// The kernels of pointwise operators, which unary.cu and binary.cu instantiate: apart, since nvcc
// takes long.
#pragma once
#include <utility>

#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cuda/broadcast.h"
#include "ebb/kernels/cuda/custom.h"

namespace ebb::cuda {

template <class F>
Status map(const KernelContext& context) {
  return pointwise<false>(context, functor_of<F>(context), std::make_integer_sequence<int, 1>());
}

template <class F>
Status zip(const KernelContext& context) {
  const auto& number = context.attribute<NumberOperand>();
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return broadcast_two<T, T>(F(), context, number.position,
                               static_cast<Accumulate<T>>(number.value));
  });
}

template <class F>
Status pair(const KernelContext& context) {
  return pointwise<false>(context, functor_of<F>(context), std::make_integer_sequence<int, 2>());
}

}  // namespace ebb::cuda
