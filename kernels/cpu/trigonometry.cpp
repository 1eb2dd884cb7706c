#include "ebb/core/kernels/functors/trigonometry.h"

#include <cmath>

#include "ebb/core/kernels/functors/quarter_turns.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/in_double.h"
#include "ebb/kernels/cpu/one_by_one.h"
#include "ebb/kernels/cpu/pointwise.h"

// sin, cos and tan of whole blocks, in double; the other functions are the C library's. Angles from
// 2^20 up, which are rare, are reduced one by one.
namespace ebb::cpu {
namespace detail {

// The sine of x + kQuarters quarter turns.
template <int kQuarters>
inline Vector<double> sine(Vector<double> x) noexcept {
  using V = Vector<double>;
  const V rounded = x * (2 / std::numbers::pi) + kRound<double>;
  const V n = rounded - kRound<double>;
  V angle =
      ((x - n * functors::kQuarter) - n * functors::kQuarterNext) - n * functors::kQuarterLast;
  BitVector<double> quarter = bits<double>(rounded) + kQuarters;
  const auto near = (x < functors::kFarAngle) & (x > -functors::kFarAngle);
  if (!fold<std::int64_t, kLanes<double>>(near, [](auto a, auto b) { return a & b; }))
    for (int i = 0; i < kLanes<double>; ++i)
      if (!near[i]) {
        const auto far = functors::far_quarter_turns(x[i]);
        angle[i] = far.rest;
        quarter[i] = static_cast<Bits<double>>(far.quarters + kQuarters);
      }
  V sine, cosine;
  sine_and_cosine(angle, sine, cosine);
  const V y = (quarter & 1) != 0 ? cosine : sine;
  return from_bits<double>(bits<double>(y) ^ ((quarter & 2) << 62));
}

}  // namespace detail

template <class T>
inline Block<T> sine(const Block<T>& x) noexcept {
  return in_double([](Vector<double> v) { return detail::sine<0>(v); }, x);
}
template <class T>
inline Block<T> cosine(const Block<T>& x) noexcept {
  return in_double([](Vector<double> v) { return detail::sine<1>(v); }, x);
}
template <class T>
inline Block<T> tangent(const Block<T>& x) noexcept {
  return in_double([](Vector<double> v) { return detail::sine<0>(v) / detail::sine<1>(v); }, x);
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
