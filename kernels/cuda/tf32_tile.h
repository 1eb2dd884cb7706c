// Tiles multiplied by tensor cores, in the shape of tile_product.h: a block of 8 warps has 64 x 64
// sums in f32, each warp 16 x 32 of them. Factors are TF32, which has all of f16 and bf16 and the
// range of f32; others are rounded to 11 bits of significand. From capability 8.0 on.
#pragma once
#include <cstdint>

#include "ebb/kernels/cuda/tile_product.h"

namespace ebb::cuda {

__device__ inline float rounded_to_tf32(float value) {
#if defined(__CUDA_ARCH__)
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
#elif !defined(__CUDACC__)
  return emulated::rounded_to_tf32(value);
#endif
}

// Columns of a and rows of b, stored by line. Lines are 12 words apart, so that the 8 lines by 4
// words that a warp reads at once lie in different banks.
struct Tf32Factors {
  static constexpr int kDepth = 8, kPitch = kDepth + 4;
  float a[kTileSide][kPitch], b[kTileSide][kPitch];

  __device__ void set_a(int depth, int line, float value) {
    a[line][depth] = rounded_to_tf32(value);
  }
  __device__ void set_b(int depth, int line, float value) {
    b[line][depth] = rounded_to_tf32(value);
  }
};

// sums [16, 8] += a [16, 8] b [8, 8], which the warp holds as PTX's mma.m16n8k8 has it: a thread
// has, of lines lane / 4 and 8 further, depths lane % 4 and 4 further, and of the result pairs of
// columns.
__device__ inline void multiply_add(float (&sums)[4], const float (&a)[4], const float (&b)[2]) {
#if defined(__CUDA_ARCH__)
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#elif !defined(__CUDACC__)
  emulated::multiply_add(sums, a, b);
#endif
}

// As for TileFactors.
__device__ inline void add_products(const Tf32Factors& tile, float (&sums)[kTileEach][kTileEach]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane / 4, column = warp / 4 * 32 + lane / 4, depth = lane % 4;
  const float a[] = {tile.a[row][depth], tile.a[row + 8][depth], tile.a[row][depth + 4],
                     tile.a[row + 8][depth + 4]};
  for (int j = 0; j < kTileEach; ++j)
    multiply_add(sums[j], a, {tile.b[column + 8 * j][depth], tile.b[column + 8 * j][depth + 4]});
}

template <class Body>
__device__ inline void for_sums(const Tf32Factors&, float (&sums)[kTileEach][kTileEach],
                                const Body& body) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane / 4, column = warp / 4 * 32 + 2 * (lane % 4);
  for (int j = 0; j < kTileEach; ++j)
    for (int i = 0; i < 4; ++i) body(row + i / 2 * 8, column + 8 * j + i % 2, sums[j][i]);
}

}  // namespace ebb::cuda
