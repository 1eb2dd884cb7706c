#include "ebb/core/kernels/functors/activations.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/tile_product.h"

namespace ebb::cuda {
namespace {

template <class T>
struct Gemm {
  using A = Accumulate<T>;
  ProductShape of;
  const T *a, *b, *bias;  // null bias: none
  T* c;
  bool accumulate, relu;

  // A factor's element at a line and a depth; 0 beyond its end.
  __device__ A factor(const T* from, std::int64_t line, std::int64_t lines, std::int64_t depth,
                      std::int64_t line_step, std::int64_t depth_step) const {
    const bool is_there = line < lines && depth < of.k;
    return is_there ? static_cast<A>(from[line * line_step + depth * depth_step]) : A(0);
  }
  __device__ void put(std::int64_t product, std::int64_t row, std::int64_t column, A sum) const {
    T& to = c[product * of.c_next + row * of.c_stride + column];
    if (bias != nullptr) sum += static_cast<A>(bias[column]);
    if (accumulate) sum += static_cast<A>(to);
    if (relu) sum = functors::Relu{}(sum);
    to = static_cast<T>(sum);
  }
};

// Neighbouring threads load neighbours in memory.
template <class T, bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kTileThreads* kTileThreads)
    gemm_kernel(const Gemm<T> gemm, const ProductTiles tiles) {
  using A = Accumulate<T>;
  constexpr int kDepth = 16, kUnroll = 2;
  __shared__ TileFactors<A, kDepth> tile;
  const ProductShape& of = gemm.of;
  for (std::int64_t at = blockIdx.x; at < tiles.count; at += gridDim.x) {
    const ProductTiles::Position corner = tiles.position(at);
    const std::int64_t product = corner.product, row = corner.row, column = corner.column;
    A sums[kTileEach][kTileEach] = {};
    for (std::int64_t depth = 0; depth < of.k; depth += kDepth) {
      for_tile<kDepth, !kTransposeA, kUnroll>([&](int d, int line) {
        tile.a[d][line] = gemm.factor(gemm.a + product * of.a_next, row + line, of.m, depth + d,
                                      kTransposeA ? 1 : of.a_stride, kTransposeA ? of.a_stride : 1);
      });
      for_tile<kDepth, kTransposeB, kUnroll>([&](int d, int line) {
        tile.b[d][line] = gemm.factor(gemm.b + product * of.b_next, column + line, of.n, depth + d,
                                      kTransposeB ? of.b_stride : 1, kTransposeB ? 1 : of.b_stride);
      });
      __syncthreads();
      add_products(tile, sums);
      __syncthreads();
    }
    for_sums(tile, sums, [&](int i, int j, A sum) {
      if (row + i < of.m && column + j < of.n) gemm.put(product, row + i, column + j, sum);
    });
  }
}

}  // namespace

Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept {
  if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return {};
  const bool relu = epilogue == Epilogue::relu || epilogue == Epilogue::bias_relu;
  const bool bias = epilogue == Epilogue::bias || epilogue == Epilogue::bias_relu;
  return for_floating(shape.dtype, [&]<class T>(T) {
    void (*const kernels[])(Gemm<T>, ProductTiles) = {
        gemm_kernel<T, false, false>, gemm_kernel<T, false, true>, gemm_kernel<T, true, false>,
        gemm_kernel<T, true, true>};
    const auto kernel = kernels[2 * shape.transpose_a + shape.transpose_b];
    const ProductTiles tiles(shape.m, shape.n, shape.batch);
    return launch(stream, kernel, tiles.blocks(), kTileThreads * kTileThreads,
                  Gemm<T>{.of = shape,
                          .a = static_cast<const T*>(operands.a),
                          .b = static_cast<const T*>(operands.b),
                          .bias = bias ? static_cast<const T*>(operands.vector) : nullptr,
                          .c = static_cast<T*>(operands.c),
                          .accumulate = operands.accumulate,
                          .relu = relu},
                  tiles);
  });
}

}  // namespace ebb::cuda
