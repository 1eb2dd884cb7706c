#pragma once
#include <cmath>
#include <limits>

#include "ebb/kernels/cpu/vector_block.h"

// Functions of blocks by the C library, number by number. For rarer functions, where vector code of
// ebb's own would not pay.
namespace ebb::cpu {

// A denormal as the zero that it counts as. The C library's logarithms and powers are wrong on
// threads that take denormals for zeros, as kernels' threads do.
template <class T>
T flushed(T x) noexcept {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}

template <class T, class F, class... More>
inline Block<T> one_by_one(const F& f, const Block<T>& x, const More&... more) noexcept {
  return Block<T>::each(
      [&](Vector<T> y, const auto&... others) {
        for (int i = 0; i < kLanes<T>; ++i) y[i] = f(flushed(y[i]), flushed(others[i])...);
        return y;
      },
      x, more...);
}

}  // namespace ebb::cpu

// A function of blocks, of one or several, from a function of <cmath>.
#define EBB_ONE_BY_ONE(name, function)                                            \
  template <class T>                                                              \
  inline Block<T> name(const Block<T>& x, const auto&... more) noexcept {         \
    return one_by_one([](auto... v) { return std::function(v...); }, x, more...); \
  }
