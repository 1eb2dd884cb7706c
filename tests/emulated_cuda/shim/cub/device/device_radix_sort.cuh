// CUB's radix sort of pairs, a kernel for each 8 bits.
#pragma once
#include <cstring>

#include <cuda_runtime.h>

namespace ebb::emulated {

// Moves pairs to the other arrays, in the order of some bits of their keys. Leaves garbage in the
// workspace, as CUB does.
template <class K, class V>
void sort_by_bits(const K* keys, K* sorted_keys, const V* values, V* sorted_values,
                  std::size_t count, int begin_bit, int bits, void* workspace, std::size_t bytes) {
  std::memset(workspace, 0xA5, bytes);
  const auto digit = [&](std::size_t i) { return keys[i] >> begin_bit & ((K{1} << bits) - 1); };
  std::size_t begins[257] = {};
  for (std::size_t i = 0; i < count; ++i) ++begins[digit(i) + 1];
  for (int d = 0; d < 256; ++d) begins[d + 1] += begins[d];
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t to = begins[digit(i)]++;
    sorted_keys[to] = keys[i];
    sorted_values[to] = values[i];
  }
}

}  // namespace ebb::emulated

namespace cub {

template <class T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;

  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() const { return d_buffers[selector]; }
  T* Alternate() const { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
  // Wants the workspace of CUB 3.0 on a GPU that it gives the smallest tiles, and refuses less.
  template <class K, class V>
  static cudaError_t SortPairs(void* workspace, std::size_t& bytes, DoubleBuffer<K>& keys,
                               DoubleBuffer<V>& values, unsigned count, int begin_bit, int end_bit,
                               cudaStream_t stream) {
    constexpr std::size_t kTile = 5376, kPortion = ((1 << 28) - 1) / kTile * kTile, kAlign = 256;
    const std::size_t passes = static_cast<std::size_t>(end_bit - begin_bit + 7) / 8;
    const std::size_t portions = (count + kPortion - 1) / kPortion;
    const std::size_t tiles = (std::min<std::size_t>(count, kPortion) + kTile - 1) / kTile;
    std::size_t wanted = kAlign - 1;
    for (const std::size_t each : {portions * passes * 1024, tiles * 1024, portions * passes * 4})
      wanted += (each + kAlign - 1) / kAlign * kAlign;
    if (!workspace) {
      bytes = wanted;
      return cudaSuccess;
    }
    if (bytes < wanted) return cudaErrorInvalidValue;
    cudaLaunchConfig_t config = {};
    config.stream = stream;
    for (int bit = begin_bit; bit < end_bit; bit += 8) {
      const cudaError_t error = cudaLaunchKernelEx(
          &config, ebb::emulated::sort_by_bits<K, V>, keys.Current(), keys.Alternate(),
          values.Current(), values.Alternate(), std::size_t{count}, bit, std::min(8, end_bit - bit),
          workspace, wanted);
      if (error != cudaSuccess) return error;
      keys.selector ^= 1;
      values.selector ^= 1;
    }
    return cudaSuccess;
  }
};

}  // namespace cub
