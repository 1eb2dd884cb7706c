// The kernels of pointwise operators. The source of each family, arithmetic.cu and its kin,
// instantiates its list.
#pragma once
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {

template <class F, class T>
struct Map {
  const T* in;
  T* out;
  F f;

  template <int N>
  __device__ void at(std::int64_t i) const {
    Pack<T, N> x = load<N>(in + i);
    for (int j = 0; j < N; ++j) x[j] = static_cast<T>(f(static_cast<Accumulate<T>>(x[j])));
    store(out + i, x);
  }
};

template <class F>
Status map(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const F f = functor_of<F>(context);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int N = kPack<T>;
    const Map<F, T> body{in.as<const T>(), out.as<T>(), f};
    return for_each<N>(stream_of(context), body, out.elements(), takes_packs<N>(body.in, body.out));
  });
}

template <class F>
Status zip(const KernelContext& context) {
  const F f;
  const Buffer &out = context.outputs[0], &left = context.inputs[0];
  const std::int64_t count = out.elements();
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    cudaStream_t stream = stream_of(context);
    const Operand<T> a{left.as<const T>()};
    T* to = out.as<T>();
    const auto& number = context.attribute<NumberOperand>();
    if (number.position != NumberOperand::none) {
      const auto value = Operand<T>::of(number.value);
      return number.position == NumberOperand::right ? zip_flat(f, stream, a, value, to, count)
                                                     : zip_flat(f, stream, value, a, to, count);
    }
    const Buffer& right = context.inputs[1];
    return broadcast(f, stream, {a, Operand<T>{right.as<const T>()}}, to,
                     BroadcastWalk(out.spec.shape, left.spec.shape, right.spec.shape), count);
  });
}

template <class F>
Status pair(const KernelContext& context) {
  const F f = functor_of<F>(context);
  const Buffer &a = context.inputs[0], &b = context.inputs[1], &out = context.outputs[0];
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    return zip_flat(f, stream_of(context), Operand<T>{a.as<const T>()}, Operand<T>{b.as<const T>()},
                    out.as<T>(), out.elements());
  });
}

}  // namespace ebb::cuda

// Instantiations for the lines of core/kernels/functors/*.inc, included next.
#define EBB_UNARY(name, Functor) template Status map<functors::Functor>(const KernelContext&);
#define EBB_BINARY(name, Functor) template Status zip<functors::Functor>(const KernelContext&);
#define EBB_PAIR(name, Functor) template Status pair<functors::Functor>(const KernelContext&);
#define EBB_MAP EBB_UNARY
#define EBB_ZIP EBB_PAIR
