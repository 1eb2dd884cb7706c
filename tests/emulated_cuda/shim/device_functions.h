// What kernels are written with, as the host's compiler understands it: one operating system thread
// runs the threads of a block as fibers (../execution/).
#pragma once
#include <cstdint>

#include <vector_types.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Of the one thread that runs kernels, so that all of it lies together and can hold garbage before
// each block.
#define __shared__ static thread_local
#define __constant__ static

extern "C" {
#define EMULATED_HIDDEN __attribute__((visibility("hidden")))
// Of the thread that runs; the fibers' switch sets them.
extern EMULATED_HIDDEN uint3 threadIdx, blockIdx;
extern EMULATED_HIDDEN dim3 blockDim, gridDim;
// Waits for the whole block, which counts, and says how many threads gave other than 0.
EMULATED_HIDDEN int ebb_emulated_barrier(int predicate, const char* file, int line);
// Waits for the lanes in the mask. Lane i gets what the lane it names gave.
EMULATED_HIDDEN std::uint64_t ebb_emulated_exchange(unsigned mask, std::uint64_t value,
                                                    int source_lane);
// Waits for the lanes in the mask. Which of them gave other than 0.
EMULATED_HIDDEN unsigned ebb_emulated_ballot(unsigned mask, int predicate);
EMULATED_HIDDEN unsigned ebb_emulated_active_mask();
EMULATED_HIDDEN int ebb_emulated_lane();
[[noreturn]] EMULATED_HIDDEN void ebb_emulated_trap();
}

inline constexpr int warpSize = 32;

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ebb_emulated_barrier(0, file, line);
}
inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return ebb_emulated_barrier(predicate, file, line);
}
inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  return ebb_emulated_barrier(predicate, file, line) != 0;
}
inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  return ebb_emulated_barrier(!predicate, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { ebb_emulated_ballot(mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return ebb_emulated_ballot(mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate) {
  return ebb_emulated_ballot(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return ebb_emulated_ballot(mask, !predicate) == 0;
}
inline unsigned __activemask() { return ebb_emulated_active_mask(); }

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
// The lane that is `by` away, where the lane itself stands in a segment of `width`.
inline int lane_behind(int lane, int by, int width) {
  return lane % width + by < width ? lane + by : lane;
}
inline int lane_ahead(int lane, int by, int width) { return lane % width >= by ? lane - by : lane; }
inline int lane_across(int lane, int by, int width) {
  const int other = lane ^ by;
  return other / width <= lane / width ? other : lane;
}

}  // namespace ebb::emulated

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  const int own = ebb_emulated_lane();
  return ebb::emulated::exchange(mask, value, own / width * width + (lane & (width - 1)));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return ebb::emulated::exchange(
      mask, value, ebb::emulated::lane_behind(ebb_emulated_lane(), static_cast<int>(by), width));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return ebb::emulated::exchange(
      mask, value, ebb::emulated::lane_ahead(ebb_emulated_lane(), static_cast<int>(by), width));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int width = warpSize) {
  return ebb::emulated::exchange(mask, value,
                                 ebb::emulated::lane_across(ebb_emulated_lane(), by, width));
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() { ebb_emulated_trap(); }
