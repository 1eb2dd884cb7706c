#pragma once
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {

template <int N, class Body>
__global__ void for_each_kernel(Body body, std::int64_t count) {
  const std::int64_t packs = count / N;
  for (std::int64_t i = grid_thread(); i < packs; i += grid_threads()) body.template at<N>(i * N);
  if constexpr (N > 1) {
    const std::int64_t i = packs * N + grid_thread();
    if (i < count) body.template at<1>(i);
  }
}

// Elementwise work. Calls body.at<N>(i) for the elements i to i + N - 1, and at<1> for the
// remainder. Calls at<1> alone where the arrays do not take packs.
template <int N, class Body>
Status for_each(cudaStream_t stream, const Body& body, std::int64_t count, bool packed) noexcept {
  if (count == 0) return {};
  if (!packed)
    return launch(stream, for_each_kernel<1, Body>, blocks_for(count), kThreads, body, count);
  return launch(stream, for_each_kernel<N, Body>, blocks_for(divide_up(count, N)), kThreads, body,
                count);
}

}  // namespace ebb::cuda
