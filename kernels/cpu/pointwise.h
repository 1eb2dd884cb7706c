// The kernels of pointwise operators. A family's source, such as arithmetic.cpp, instantiates its
// list.
#pragma once
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cpu/broadcast.h"

namespace ebb::cpu {

template <class F, class S>
EBB_FLATTEN void map_blocks(F f, const S* in, S* out, std::int64_t count) noexcept {
  using T = Computed<S>;
  for (std::int64_t i = 0; i < count; i += kBlock<T>) {
    const std::int64_t rest = count - i;
    const Block<T> x = rest >= kBlock<T> ? load(in + i) : load_tail(in + i, rest);
    store_some(out + i, evaluate<F, T>(f, x), rest);
  }
}

template <class F, class S>
void map_run(F f, const S* in, S* out, std::int64_t count) noexcept {
  if constexpr (kExact<F> && kIsHalf<S>) {
    for_computed(in, out, 0, count, [&](const float* x, float* y, std::int64_t, std::int64_t n) {
      map_run(f, x, y, n);
    });
  } else if constexpr (kExact<F>) {
    EBB_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
  } else {
    map_blocks(f, in, out, count);
  }
}

template <class F>
Status map(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const F f = functor_of<F>(context);
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const T* from = in.as<const T>();
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      map_run(f, from + begin, to + begin, end - begin);
    });
  });
}

template <class F>
Status zip(const KernelContext& context) {
  const F f;
  const Buffer &out = context.outputs[0], &left = context.inputs[0];
  const std::int64_t count = out.elements();
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const T* a = left.as<const T>();
    T* to = out.as<T>();
    const auto& number = context.attribute<NumberOperand>();
    if (number.position != NumberOperand::none) {
      const auto value = static_cast<Computed<T>>(number.value);
      if (number.position == NumberOperand::right) {
        zip_flat(f, a, false, &value, true, to, count);
      } else {
        zip_flat(f, &value, true, a, false, to, count);
      }
      return;
    }
    const Buffer& right = context.inputs[1];
    const T* b = right.as<const T>();
    if (left.elements() == count && right.elements() == count) {
      zip_flat(f, a, false, b, false, to, count);
    } else {
      broadcast(f, a, left.spec.shape, b, right.spec.shape, to, out.spec.shape);
    }
  });
}

template <class F>
Status pair(const KernelContext& context) {
  const F f = functor_of<F>(context);
  const Buffer &a = context.inputs[0], &b = context.inputs[1], &out = context.outputs[0];
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    zip_flat(f, a.as<const T>(), false, b.as<const T>(), false, out.as<T>(), out.elements());
  });
}

}  // namespace ebb::cpu

// The kernels that a line of core/kernels/functors/*.inc, included next, instantiates.
#define EBB_UNARY(name, Functor) template Status map<functors::Functor>(const KernelContext&);
#define EBB_BINARY(name, Functor) template Status zip<functors::Functor>(const KernelContext&);
#define EBB_PAIR(name, Functor) template Status pair<functors::Functor>(const KernelContext&);
#define EBB_MAP EBB_UNARY
#define EBB_ZIP EBB_PAIR
