#pragma once
#include "ebb/kernels/cpu/vector_block.h"

// Functions of blocks by way of double: f takes Vector<double>s.
namespace ebb::cpu {
namespace detail {

template <int... I>
inline Vector<float> joined(const Lanes<float, kLanes<double>>& low,
                            const Lanes<float, kLanes<double>>& high,
                            std::integer_sequence<int, I...>) noexcept {
  return __builtin_shufflevector(low, high, I...);
}

template <class F>
inline Vector<float> in_double(const F& f, const auto&... x) noexcept {
  constexpr int N = kLanes<float>;
  constexpr std::make_integer_sequence<int, N / 2> kHalf;
  const Vector<double> low =
      f(__builtin_convertvector((low_half<float, N>(x, kHalf)), Vector<double>)...);
  const Vector<double> high =
      f(__builtin_convertvector((high_half<float, N>(x, kHalf)), Vector<double>)...);
  using Half = Lanes<float, kLanes<double>>;
  return joined(__builtin_convertvector(low, Half), __builtin_convertvector(high, Half),
                std::make_integer_sequence<int, N>());
}

}  // namespace detail

template <class F, class... More>
inline Block<float> in_double(const F& f, const Block<float>& x, const More&... more) noexcept {
  return Block<float>::each([&](const auto&... v) { return detail::in_double(f, v...); }, x,
                            more...);
}
template <class F, class... More>
inline Block<double> in_double(const F& f, const Block<double>& x, const More&... more) noexcept {
  return Block<double>::each(f, x, more...);
}

}  // namespace ebb::cpu
