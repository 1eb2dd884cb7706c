#pragma once
#include <type_traits>

#include "ebb/core/kernels/functors.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {

// Functors of IEEE's exact operations give the same bits as scalars, and compilers vectorise them
// better than Eigen does (its select is scalar). The others are approximations on whole vectors.
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
inline Block<T> evaluate(const F& f, const Eigen::Array<T, 64 / sizeof(T), 1>& x,
                         const Others&... others) noexcept {
  if constexpr (kExact<F>) {
    Block<T> result;
    for (int i = 0; i < Block<T>::SizeAtCompileTime; ++i)
      result.data()[i] = f(x.data()[i], others.data()[i]...);
    return result;
  } else {
    return f(x, others...);
  }
}

}  // namespace ebb::cpu
