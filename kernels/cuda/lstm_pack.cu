#include "ebb/kernels/cuda/lstm_pack.h"

#include <algorithm>

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {
namespace {

constexpr int kTile = kWarp, kTileRows = 8;

// to[4, columns, rows] = from[rows, 4, columns]; or, unpacking, the other way round.
template <class T, bool kUnpack>
__global__ void transpose_gates(const T* from, T* to, std::int64_t rows, std::int64_t columns) {
  __shared__ T tile[kTile][kTile + 1];
  const std::int64_t gate = blockIdx.z, plain_stride = 4 * columns;
  const std::int64_t plain_at = gate * columns, packed_at = gate * rows * columns;
  const std::int64_t from_rows = kUnpack ? columns : rows, from_columns = kUnpack ? rows : columns;
  const T* const source = from + (kUnpack ? packed_at : plain_at);
  T* const target = to + (kUnpack ? plain_at : packed_at);
  const std::int64_t source_stride = kUnpack ? rows : plain_stride;
  const std::int64_t target_stride = kUnpack ? plain_stride : rows;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (std::int64_t row = std::int64_t{blockIdx.y} * kTile; row < from_rows;
       row += std::int64_t{gridDim.y} * kTile)
    for (std::int64_t column = std::int64_t{blockIdx.x} * kTile; column < from_columns;
         column += std::int64_t{gridDim.x} * kTile) {
      for (int i = y; i < kTile; i += kTileRows)
        if (row + i < from_rows && column + x < from_columns)
          tile[i][x] = source[(row + i) * source_stride + column + x];
      __syncthreads();
      for (int i = y; i < kTile; i += kTileRows)
        if (column + i < from_columns && row + x < from_rows)
          target[(column + i) * target_stride + row + x] = tile[x][i];
      __syncthreads();
    }
}

// A row of threads copies a row.
template <class T>
__global__ void swap_outer_axes(const T* from, T* to, std::int64_t outer, std::int64_t inner,
                                std::int64_t width) {
  const std::int64_t step = std::int64_t{gridDim.x} * kTileRows;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kTileRows + threadIdx.y; row < outer * inner;
       row += step) {
    const T* const source = from + (row % outer * inner + row / outer) * width;
    for (std::int64_t j = threadIdx.x; j < width; j += kTile) to[row * width + j] = source[j];
  }
}

template <class T, bool kUnpack>
Status transpose(cudaStream_t stream, const T* from, T* to, std::int64_t rows,
                 std::int64_t columns) noexcept {
  const auto tiles = [](std::int64_t size) {
    constexpr std::int64_t kMost = 1 << 15;
    return static_cast<unsigned>(std::min(kMost, divide_up(size, kTile)));
  };
  return launch(stream, transpose_gates<T, kUnpack>,
                dim3(tiles(kUnpack ? rows : columns), tiles(kUnpack ? columns : rows), 4),
                dim3(kTile, kTileRows), from, to, rows, columns);
}

}  // namespace

template <class T>
Status pack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                    std::int64_t hidden, const T* w, const T* r, const T* b, T* packed) noexcept {
  const std::size_t bias_bytes = static_cast<std::size_t>(4 * hidden) * sizeof(T);
  EBB_TRY((transpose<T, false>(stream, w, packed + at.w, in, hidden)));
  EBB_TRY((transpose<T, false>(stream, r, packed + at.r, hidden, hidden)));
  EBB_TRY(copy(stream, packed + at.b, b, bias_bytes));
  return clear(stream, packed + at.second_b, bias_bytes);
}

template <class T>
Status unpack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                      std::int64_t hidden, const T* packed, T* dw, T* dr, T* db) noexcept {
  if (dw != nullptr) EBB_TRY((transpose<T, true>(stream, packed + at.w, dw, in, hidden)));
  if (dr != nullptr) EBB_TRY((transpose<T, true>(stream, packed + at.r, dr, hidden, hidden)));
  return copy(stream, db, packed + at.b, static_cast<std::size_t>(4 * hidden) * sizeof(T));
}

template <class T>
Status swap_axes(cudaStream_t stream, const T* from, T* to, std::int64_t outer, std::int64_t inner,
                 std::int64_t width) noexcept {
  if (outer * inner * width == 0) return {};
  return launch(stream, swap_outer_axes<T>, blocks_for(outer * inner, kTileRows),
                dim3(kTile, kTileRows), from, to, outer, inner, width);
}

#define EBB_LSTM_PACK(T)                                                                        \
  template Status pack_weights(cudaStream_t, const CudnnWeights&, std::int64_t, std::int64_t,   \
                               const T*, const T*, const T*, T*) noexcept;                      \
  template Status unpack_weights(cudaStream_t, const CudnnWeights&, std::int64_t, std::int64_t, \
                                 const T*, T*, T*, T*) noexcept;                                \
  template Status swap_axes(cudaStream_t, const T*, T*, std::int64_t, std::int64_t,             \
                            std::int64_t) noexcept;
EBB_LSTM_PACK(float)
EBB_LSTM_PACK(double)
EBB_LSTM_PACK(Float16)
EBB_LSTM_PACK(BFloat16)
#undef EBB_LSTM_PACK

}  // namespace ebb::cuda
