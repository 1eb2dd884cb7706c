// Shared by kernels that multiply tile by tile. A block of 16 x 16 threads has a tile of 64 x 64
// sums; each thread has 4 x 4 of them, 16 apart, so that neighbours write side by side.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

inline constexpr int kTileSide = 64, kTileThreads = 16, kTileEach = kTileSide / kTileThreads;
inline constexpr int kTilePitch = kTileSide + 1;  // odd, so that columns lie in different banks

// The tiles of `products` products of one shape, neighbours side by side.
struct ProductTiles {
  std::int64_t count;
  AnyDivider by_across, by_down;

  ProductTiles(std::int64_t rows, std::int64_t columns, std::int64_t products) noexcept
      : count(divide_up(rows, kTileSide) * divide_up(columns, kTileSide) * products),
        by_across(divide_up(columns, kTileSide)),
        by_down(divide_up(rows, kTileSide)) {}

  __host__ unsigned blocks() const noexcept {
    constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
    return static_cast<unsigned>(std::min(kMostBlocks, count));
  }
  // Product, first row and first column of a tile.
  struct Position {
    std::int64_t product, row, column;
  };
  __device__ Position position(std::int64_t at) const {
    std::int64_t row = by_across.divide(at);
    const std::int64_t product = by_down.divide(row);
    return {product, row * kTileSide, at * kTileSide};
  }
};

// kDepth columns of a and rows of b, stored by depth.
template <class A, int kDepthOf>
struct TileFactors {
  static constexpr int kDepth = kDepthOf;
  A a[kDepth][kTilePitch];
  A b[kDepth][kTilePitch];

  __device__ void set_a(int depth, int line, A value) { a[depth][line] = value; }
  __device__ void set_b(int depth, int line, A value) { b[depth][line] = value; }
};

// Calls body(depth, line) for this thread's elements of a tile of lines by kDepth. Neighbouring
// threads have neighbouring depths (kAlongDepth) or lines. kUnroll: iterations unrolled.
template <int kDepth, bool kAlongDepth, int kUnroll = 8, class Body>
__device__ inline void for_tile(const Body& body) {
  constexpr int kBlock = kTileThreads * kTileThreads;
#pragma unroll kUnroll
  for (int at = static_cast<int>(threadIdx.x); at < kTileSide * kDepth; at += kBlock)
    body(kAlongDepth ? at % kDepth : at / kTileSide, kAlongDepth ? at / kDepth : at % kTileSide);
}

// sums += a b over the depths of the tile. All threads of the block call it after a barrier.
template <class A, int kDepth>
__device__ inline void add_products(const TileFactors<A, kDepth>& tile,
                                    A (&sums)[kTileEach][kTileEach]) {
  const int x = static_cast<int>(threadIdx.x) % kTileThreads,
            y = static_cast<int>(threadIdx.x) / kTileThreads;
// As the compiler would unroll it, it runs out of registers.
#pragma unroll(sizeof(A) == 8 ? 1 : 2)
  for (int l = 0; l < kDepth; ++l) {
    A a[kTileEach], b[kTileEach];
    for (int i = 0; i < kTileEach; ++i) {
      a[i] = tile.a[l][y + i * kTileThreads];
      b[i] = tile.b[l][x + i * kTileThreads];
    }
    for (int i = 0; i < kTileEach; ++i)
      for (int j = 0; j < kTileEach; ++j) sums[i][j] += a[i] * b[j];
  }
}

// Calls body(row, column, sum) for this thread's sums.
template <class A, int kDepth, class Body>
__device__ inline void for_sums(const TileFactors<A, kDepth>&, A (&sums)[kTileEach][kTileEach],
                                const Body& body) {
  const int x = static_cast<int>(threadIdx.x) % kTileThreads,
            y = static_cast<int>(threadIdx.x) / kTileThreads;
// So that the sums stay in registers, whatever the body.
#pragma unroll
  for (int j = 0; j < kTileEach; ++j)
#pragma unroll
    for (int i = 0; i < kTileEach; ++i)
      body(y + i * kTileThreads, x + j * kTileThreads, sums[i][j]);
}

}  // namespace ebb::cuda
