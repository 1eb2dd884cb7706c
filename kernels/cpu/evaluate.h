#pragma once
#include "ebb/core/kernels/functors.h"
#include "ebb/kernels/cpu/elementary.h"

namespace ebb::cpu {

// Functors of IEEE's exact operations give the same bits as scalars, so that compilers may
// vectorise loops of them. The others are approximations on whole blocks.
template <class F>
inline constexpr bool kExact = false;
template <>
inline constexpr bool kExact<functors::Negate> = true;
template <>
inline constexpr bool kExact<functors::Square> = true;
template <>
inline constexpr bool kExact<functors::Sqrt> = true;
template <>
inline constexpr bool kExact<functors::Relu> = true;
template <>
inline constexpr bool kExact<functors::Add> = true;
template <>
inline constexpr bool kExact<functors::Subtract> = true;
template <>
inline constexpr bool kExact<functors::Multiply> = true;
template <>
inline constexpr bool kExact<functors::Divide> = true;
template <>
inline constexpr bool kExact<functors::ReluGradient> = true;

template <class F, class T, class... Others>
inline Block<T> evaluate(const F& f, const Block<T>& x, const Others&... others) noexcept {
  if constexpr (kExact<F>) {
    return Block<T>::each(f, x, others...);
  } else {
    return f(x, others...);
  }
}

}  // namespace ebb::cpu
