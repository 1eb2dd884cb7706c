// Functions of CUDA's device code that the host's library does not have.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

// What kernels call without a namespace.
using std::max;
using std::min;

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }

// Reduced before pi comes in, so that half turns are exact.
inline double sinpi(double x) {
  const double turned = std::remainder(x, 2.0);  // [-1, 1], exact
  const double magnitude = std::fabs(turned);
  if (magnitude == 0 || magnitude == 1) return std::copysign(0.0, x);
  const double sine = magnitude <= 0.25   ? std::sin(std::numbers::pi * magnitude)
                      : magnitude <= 0.75 ? std::cos(std::numbers::pi * (0.5 - magnitude))
                                          : std::sin(std::numbers::pi * (1 - magnitude));
  return std::copysign(sine, turned);
}
inline double cospi(double x) {
  const double magnitude = std::fabs(std::remainder(x, 2.0));
  if (magnitude == 0.5) return 0;
  return magnitude <= 0.25   ? std::cos(std::numbers::pi * magnitude)
         : magnitude <= 0.75 ? std::sin(std::numbers::pi * (0.5 - magnitude))
                             : -std::cos(std::numbers::pi * (1 - magnitude));
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0f), 1.0f); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
__extension__ typedef unsigned __int128 ebb_emulated_uint128;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<ebb_emulated_uint128>(a) * b) >> 64);
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
