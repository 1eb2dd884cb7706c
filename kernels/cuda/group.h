// Groups of threads that work on a row together. A block has one group or several, which go through
// the loop over their rows in step: all threads must call sum() and max(), even in a group without
// a row.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "ebb/kernels/cuda/fold_block.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {

inline constexpr unsigned kWholeWarp = 0xFFFFFFFF;

// Reduce over `threads` lanes of a warp, a power of two. Every lane gets the result.
__device__ inline double lanes_sum(double x, int threads = kWarp) {
  for (int distance = threads / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, distance);
  return x;
}
__device__ inline double lanes_max(double x, int threads = kWarp) {
  for (int distance = threads / 2; distance > 0; distance /= 2) {
    const double other = __shfl_xor_sync(kWholeWarp, x, distance);
    x = other > x ? other : x;
  }
  return x;
}

class Group {
 public:
  // `threads`: a power of two up to a warp; 0: the block is one group. `scratch`: shared memory
  // with a number for each warp.
  __device__ Group(int threads, double* scratch)
      : threads_(threads == 0 ? static_cast<int>(blockDim.x) : threads), scratch_(scratch) {}

  __device__ int threads() const { return threads_; }
  __device__ int thread() const { return static_cast<int>(threadIdx.x) & (threads_ - 1); }
  __device__ std::int64_t index_in_block() const {
    return static_cast<int>(threadIdx.x) / threads_;
  }
  __device__ std::int64_t groups_of_block() const {
    return static_cast<int>(blockDim.x) / threads_;
  }

  __device__ double sum(double x) const {
    if (threads_ <= kWarp) return lanes_sum(x, threads_);
    const double of_warp = exchange(lanes_sum(x));
    return lanes_sum(stands_for_warp() ? of_warp : 0);
  }
  __device__ double max(double x) const {
    return threads_ <= kWarp ? lanes_max(x, threads_) : lanes_max(exchange(lanes_max(x)));
  }
  // The sum of the terms of a row (lane_sums).
  template <int N, class Load>
  __device__ double sum(std::int64_t count, bool packed, const Load& load) const {
    return sum(lane_sums<N>(packed, 0, count, thread(), threads_, load)[0]);
  }
  // Calls body.operator()<N>(i) for the elements i to i + N - 1 of a row if `packed`, and
  // operator()<1> for the remainder.
  template <int N, class Body>
  __device__ void each(std::int64_t count, bool packed, const Body& body) const {
    const std::int64_t packs = packed ? count / N : 0;
    for (std::int64_t i = thread(); i < packs; i += threads_) body.template operator()<N>(i * N);
    for (std::int64_t i = packs * N + thread(); i < count; i += threads_)
      body.template operator()<1>(i);
  }

 private:
  __device__ bool stands_for_warp() const { return thread() % kWarp < threads_ / kWarp; }
  // Shares one number per warp: lane i of every warp gets warp i's. Lanes beyond the last warp get
  // the first warp's.
  __device__ double exchange(double x) const {
    __syncthreads();  // scratch may still be read
    if (thread() % kWarp == 0) scratch_[thread() / kWarp] = x;
    __syncthreads();
    return scratch_[stands_for_warp() ? thread() % kWarp : 0];
  }

  int threads_;
  double* scratch_;
};

// Calls body(row, there) for this block's rows, by all groups in step. A group without a row left
// is called with the last row and there = false.
template <class Body>
__device__ inline void for_rows(const Group& group, std::int64_t rows, const Body& body) {
  const std::int64_t at_once = group.groups_of_block();
  for (std::int64_t first = blockIdx.x * at_once; first < rows; first += gridDim.x * at_once) {
    const std::int64_t row = first + group.index_in_block();
    const bool there = row < rows;
    body(there ? row : rows - 1, there);
  }
}

}  // namespace ebb::cuda
