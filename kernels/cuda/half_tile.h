// Tiles of f16 and bf16 multiplied by tensor cores, in the shape of tile_product.h: a block of 8
// warps has 64 x 64 sums in f32, each warp 16 x 32 of them.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/tile_product.h"

namespace ebb::cuda {

// Columns of a and rows of b, stored by line. Lines are 12 words apart, so that the 8 lines by 4
// words that a warp reads at once lie in different banks.
template <class T>
struct HalfFactors {
  static constexpr int kDepth = 16, kPitch = kDepth + 8;
  alignas(16) T a[kTileSide][kPitch], b[kTileSide][kPitch];

  __device__ void set_a(int depth, int line, float value) {
    a[line][depth] = static_cast<T>(value);
  }
  __device__ void set_b(int depth, int line, float value) {
    b[line][depth] = static_cast<T>(value);
  }
};

// sums [16, 8] += a [16, 16] b [16, 8], which the warp holds as PTX's mma.m16n8k16 has it: a thread
// has pairs along the depth of lines lane / 4 and 8 further, and of the result pairs of columns.
template <class T>
__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__)
#define EBB_MULTIPLY_ADD(types)                                         \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." types                    \
      ".f32 "                                                           \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])      \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (std::is_same_v<T, Float16>)
    EBB_MULTIPLY_ADD("f16.f16");
  else
    EBB_MULTIPLY_ADD("bf16.bf16");
#undef EBB_MULTIPLY_ADD
#elif !defined(__CUDACC__)
  emulated::multiply_add<T>(sums, a, b);
#endif
}

// As for TileFactors.
template <class T>
__device__ inline void add_products(const HalfFactors<T>& tile,
                                    float (&sums)[kTileEach][kTileEach]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane / 4, column = warp / 4 * 32 + lane / 4,
            depth = 2 * (lane % 4);
  const auto pair = [](const T& first) { return std::bit_cast<std::uint32_t>(load<2>(&first)); };
  const std::uint32_t a[] = {pair(tile.a[row][depth]), pair(tile.a[row + 8][depth]),
                             pair(tile.a[row][depth + 8]), pair(tile.a[row + 8][depth + 8])};
  for (int j = 0; j < kTileEach; ++j) {
    const T* const line = tile.b[column + 8 * j];
    multiply_add<T>(sums[j], a, {pair(line[depth]), pair(line[depth + 8])});
  }
}

template <class T, class Body>
__device__ inline void for_sums(const HalfFactors<T>&, float (&sums)[kTileEach][kTileEach],
                                const Body& body) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane / 4, column = warp / 4 * 32 + 2 * (lane % 4);
  for (int j = 0; j < kTileEach; ++j)
    for (int i = 0; i < 4; ++i) body(row + i / 2 * 8, column + 8 * j + i % 2, sums[j][i]);
}

}  // namespace ebb::cuda
