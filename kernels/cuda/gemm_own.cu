#include "ebb/kernels/cuda/gemm_own.h"

#include <algorithm>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

// A block computes a tile of c, taking kDepth columns of a and kDepth rows of b at a time. Each of
// its 16 x 16 threads has 4 x 4 elements, 16 apart, so that neighbours write side by side.
constexpr int kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;
constexpr int kPitch = kTile + 1;  // odd: a transposed tile's columns lie in different banks

template <class T>
struct Operands {
  const T* a;
  const T* b;
  T* c;
  std::int64_t m, n, k;
  std::int64_t a_stride, b_stride, c_stride;
  std::int64_t batch, a_next, b_next, c_next;
  const T* bias;  // or null
  bool accumulate, relu;
};

// Loads tile[depth][line] from an operand of `lines` lines and `depths` depths, from `line` and
// `depth` on, with zeros beyond. Neighbouring threads read neighbouring elements: along the depth
// if that is the operand's row, else along the lines.
template <bool kDepthIsRow, class T>
__device__ void load_tile(Accumulate<T> (&tile)[kDepth][kPitch], const T* from, std::int64_t stride,
                          std::int64_t line, std::int64_t lines, std::int64_t depth,
                          std::int64_t depths) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < kEach; ++i) {
    const int at = thread + i * kSide * kSide;
    const int in_line = kDepthIsRow ? at / kDepth : at % kTile;
    const int in_depth = kDepthIsRow ? at % kDepth : at / kTile;
    const std::int64_t l = line + in_line, d = depth + in_depth;
    tile[in_depth][in_line] =
        l < lines && d < depths
            ? static_cast<Accumulate<T>>(from[kDepthIsRow ? l * stride + d : d * stride + l])
            : 0;
  }
}

template <class T, bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kSide* kSide) multiply(const Operands<T> of) {
  __shared__ Accumulate<T> a_tile[kDepth][kPitch];
  __shared__ Accumulate<T> b_tile[kDepth][kPitch];
  const int thread = static_cast<int>(threadIdx.x), x = thread % kSide, y = thread / kSide;
  const std::int64_t across = (of.n + kTile - 1) / kTile, down = (of.m + kTile - 1) / kTile;
  const std::int64_t tiles = across * down;  // of one product
  for (std::int64_t at = blockIdx.x; at < tiles * of.batch; at += gridDim.x) {
    const std::int64_t product = at / tiles, tile = at - product * tiles;
    const std::int64_t row = tile / across * kTile, column = tile % across * kTile;
    const T* const own_a = of.a + product * of.a_next;
    const T* const own_b = of.b + product * of.b_next;
    T* const own_c = of.c + product * of.c_next;
    Accumulate<T> sums[kEach][kEach] = {};
    for (int j = 0; j < kEach && of.bias != nullptr; ++j) {
      const std::int64_t at_column = column + x + j * kSide;
      if (at_column >= of.n) break;
      for (int i = 0; i < kEach; ++i) sums[i][j] = static_cast<Accumulate<T>>(of.bias[at_column]);
    }
    for (std::int64_t depth = 0; depth < of.k; depth += kDepth) {
      load_tile<!kTransposeA>(a_tile, own_a, of.a_stride, row, of.m, depth, of.k);
      load_tile<kTransposeB>(b_tile, own_b, of.b_stride, column, of.n, depth, of.k);
      __syncthreads();
      for (int l = 0; l < kDepth; ++l) {
        Accumulate<T> a[kEach], b[kEach];
        for (int i = 0; i < kEach; ++i) {
          a[i] = a_tile[l][y + i * kSide];
          b[i] = b_tile[l][x + i * kSide];
        }
        for (int i = 0; i < kEach; ++i)
          for (int j = 0; j < kEach; ++j) sums[i][j] += a[i] * b[j];
      }
      __syncthreads();
    }
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t at_row = row + y + i * kSide;
      for (int j = 0; j < kEach && at_row < of.m; ++j) {
        const std::int64_t at_column = column + x + j * kSide;
        if (at_column >= of.n) break;
        T& to = own_c[at_row * of.c_stride + at_column];
        Accumulate<T> value = sums[i][j];
        if (of.accumulate) value += static_cast<Accumulate<T>>(to);
        if (of.relu) value = functors::Relu{}(value);
        to = static_cast<T>(value);
      }
    }
  }
}

}  // namespace

Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept {
  if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return {};
  const std::int64_t across = (shape.n + kTile - 1) / kTile, down = (shape.m + kTile - 1) / kTile;
  constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
  const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, across * down * shape.batch));
  const bool relu = epilogue == Epilogue::relu || epilogue == Epilogue::bias_relu;
  const bool bias = epilogue == Epilogue::bias || epilogue == Epilogue::bias_relu;
  return for_floating(shape.dtype, [&](auto type) {
    using T = decltype(type);
    const auto kernel =
        shape.transpose_a
            ? (shape.transpose_b ? multiply<T, true, true> : multiply<T, true, false>)
            : (shape.transpose_b ? multiply<T, false, true> : multiply<T, false, false>);
    return launch(stream, kernel, blocks, kSide * kSide,
                  Operands<T>{.a = static_cast<const T*>(operands.a),
                              .b = static_cast<const T*>(operands.b),
                              .c = static_cast<T*>(operands.c),
                              .m = shape.m,
                              .n = shape.n,
                              .k = shape.k,
                              .a_stride = shape.a_stride,
                              .b_stride = shape.b_stride,
                              .c_stride = shape.c_stride,
                              .batch = shape.batch,
                              .a_next = shape.a_next,
                              .b_next = shape.b_next,
                              .c_next = shape.c_next,
                              .bias = bias ? static_cast<const T*>(operands.vector) : nullptr,
                              .accumulate = operands.accumulate,
                              .relu = relu});
  });
}

}  // namespace ebb::cuda
