// Fills memory in a stream.
#pragma once
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/pack.h"

namespace ebb::cuda {

template <class T>
struct Fill {
  T* out;
  T value;

  template <int N>
  __device__ void at(std::int64_t i) const {
    store(out + i, splat<N>(value));
  }
};

template <class T>
Status fill_with(cudaStream_t stream, T* out, T value, std::int64_t count) noexcept {
  constexpr int N = kPack<T>;
  return for_each<N>(stream, Fill<T>{out, value}, count, takes_packs<N>(out));
}

}  // namespace ebb::cuda
