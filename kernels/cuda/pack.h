#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ebb::cuda {

// N neighbouring elements. One instruction loads or stores them, up to 16 bytes.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T elements[N];

  __device__ T& operator[](int i) { return elements[i]; }
  __device__ const T& operator[](int i) const { return elements[i]; }
  template <class From>
  __device__ Pack& operator+=(const Pack<From, N>& x) {
    for (int j = 0; j < N; ++j) elements[j] += static_cast<T>(x[j]);
    return *this;
  }
};

// Number of elements of T in 16 bytes.
template <class T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

template <int N, class T>
__device__ inline Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
__device__ inline void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}
template <int N, class T>
__device__ inline Pack<T, N> splat(T value) {
  Pack<T, N> pack;
  for (int j = 0; j < N; ++j) pack[j] = value;
  return pack;
}

// Converts each element to another type.
template <class To, class From, int N>
__device__ inline Pack<To, N> as_pack(const Pack<From, N>& from) {
  Pack<To, N> pack;
  for (int j = 0; j < N; ++j) pack[j] = static_cast<To>(from[j]);
  return pack;
}

// Whether packs of N can be read there. Not always: views begin at any element.
template <int N, class... T>
__host__ __device__ inline bool takes_packs(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<T, N>) == 0) && ...);
}

// Whether packs can be read in each of some rows that follow each other without gaps.
template <int N, class... T>
__host__ __device__ inline bool rows_take_packs(std::int64_t elements, const T*... rows) {
  return elements % N == 0 && takes_packs<N>(rows...);
}

}  // namespace ebb::cuda
