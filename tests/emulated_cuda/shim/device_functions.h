// The language of kernels, for the host's compiler. One thread of the operating system runs the
// threads of a block as fibers (../execution/).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <cuda_runtime_api.h>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// Storage of the one thread that runs kernels, so that all of it lies together and can be filled
// with garbage before each block.
#define __shared__ static thread_local

extern "C" {
#define EMULATED_HIDDEN __attribute__((visibility("hidden")))
// Indices of the running thread. A switch between fibers sets them.
extern EMULATED_HIDDEN uint3 threadIdx, blockIdx;
extern EMULATED_HIDDEN dim3 blockDim, gridDim;
// Waits for all threads of the block.
EMULATED_HIDDEN void ebb_emulated_barrier(const char* file, int line);
// Waits for the whole warp; the mask must name all of its lanes. Each lane receives the value that
// its source lane gave.
EMULATED_HIDDEN std::uint64_t ebb_emulated_exchange(unsigned mask, std::uint64_t value,
                                                    int source_lane);
// Waits for the whole warp likewise. Returns a bit for each lane whose predicate was not 0.
EMULATED_HIDDEN unsigned ebb_emulated_ballot(unsigned mask, int predicate);
EMULATED_HIDDEN int ebb_emulated_lane();
}

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ebb_emulated_barrier(file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return ebb_emulated_ballot(mask, predicate);
}

namespace ebb::emulated {

template <class T>
T exchange(unsigned mask, T value, int source_lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the types that CUDA shuffles");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = ebb_emulated_exchange(mask, bits, source_lane);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace ebb::emulated

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by) {
  return ebb::emulated::exchange(mask, value, ebb_emulated_lane() ^ by);
}

namespace ebb::emulated {

// To nearest, ties away from zero; NaN stays NaN.
inline float rounded_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return value != value ? value : std::bit_cast<float>((bits + 0x1000U) & ~0x1FFFU);
}

// The warp's mma.m16n8k8: gathers two lines of a and two of b, and adds their products.
inline void multiply_add(float (&sums)[4], const float (&a)[4], const float (&b)[2]) {
  float of_a[2][8], of_b[2][8];
  const int lane = ebb_emulated_lane();
  for (int part = 0; part < 4; ++part)
    for (int i = 0; i < 4; ++i) {
      of_a[i % 2][part + i / 2 * 4] = exchange(~0U, a[i], lane / 4 * 4 + part);
      of_b[i % 2][part + i / 2 * 4] = exchange(~0U, b[i / 2], (2 * (lane % 4) + i % 2) * 4 + part);
    }
  for (int i = 0; i < 4; ++i)
    for (int depth = 0; depth < 8; ++depth) sums[i] += of_a[i / 2][depth] * of_b[i % 2][depth];
}

}  // namespace ebb::emulated

// Kernels call these without a namespace.
using std::max;
using std::min;

// Reduces the range before multiplying with pi, so that multiples of a half are exact.
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
inline int __popc(unsigned x) { return std::popcount(x); }
