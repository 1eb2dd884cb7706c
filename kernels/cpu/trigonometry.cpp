#include "ebb/core/kernels/functors/trigonometry.h"

#include <cmath>

#include "ebb/kernels/cpu/one_by_one.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {

template <class T>
inline Block<T> sine(const Block<T>& x) noexcept {
  return one_by_one([](T v) { return std::sin(v); }, x);
}
template <class T>
inline Block<T> cosine(const Block<T>& x) noexcept {
  return one_by_one([](T v) { return std::cos(v); }, x);
}
template <class T>
inline Block<T> tangent(const Block<T>& x) noexcept {
  return one_by_one([](T v) { return std::tan(v); }, x);
}
EBB_ONE_BY_ONE(asin)
EBB_ONE_BY_ONE(acos)
EBB_ONE_BY_ONE(atan)
EBB_ONE_BY_ONE(sinh)
EBB_ONE_BY_ONE(cosh)
EBB_ONE_BY_ONE(asinh)
EBB_ONE_BY_ONE(acosh)
EBB_ONE_BY_ONE(atanh)
template <class T>
inline Block<T> atan2(const Block<T>& y, const Block<T>& x) noexcept {
  return one_by_one([](T a, T b) { return std::atan2(a, b); }, y, x);
}

#include "ebb/core/kernels/functors/trigonometry.inc"
}  // namespace ebb::cpu
