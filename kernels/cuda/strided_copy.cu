#include "ebb/kernels/cuda/strided_copy.h"

#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

constexpr int kTile = kWarp, kTileRows = 8;

// Copies word by word from a strided input.
template <class W, class Index>
struct WordLoad {
  const W* in;
  W* out;
  Walk<Index, kMaxRank> walk;

  template <int N>
  __device__ void at(std::int64_t i) const {
    out[i] = in[walk.offset(i)];
  }
};

// Copies word by word to a strided output: to the index *begin, 0 to `last`, of an axis whose
// indices are `distance` apart; a null begin is an index of 1.
template <class W, class Index>
struct WordStore {
  const W* in;
  W* out;
  Walk<Index, kMaxRank> walk;
  const std::int64_t* begin;
  std::int64_t last, distance;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const std::int64_t first = begin == nullptr ? 1 : *begin;
    if (first >= 0 && first <= last) out[first * distance + walk.offset(i)] = in[i];
  }
};

// Matrices [rows, columns] to transpose tile by tile. The walk maps a tile to its offsets in input
// and output, and to its first row and column.
template <class W, class Index>
struct Tiles {
  const W* in;
  W* out;
  Walk<Index, kMaxRank, 4> walk;
  std::int64_t count, rows, columns, in_stride, out_stride;
};

template <class W, class Index>
__global__ void transpose_tiles(Tiles<W, Index> tiles) {
  __shared__ W tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (std::int64_t index = blockIdx.x; index < tiles.count; index += gridDim.x) {
    std::int64_t at[4];
    tiles.walk.offsets(index, at);
    const std::int64_t rows = tiles.rows - at[2], columns = tiles.columns - at[3];
    if (x < columns)
      for (int i = y; i < kTile && i < rows; i += kTileRows)
        tile[i][x] = tiles.in[at[0] + i * tiles.in_stride + x];
    __syncthreads();
    if (x < rows)
      for (int i = y; i < kTile && i < columns; i += kTileRows)
        tiles.out[at[1] + i * tiles.out_stride + x] = tile[x][i];
    __syncthreads();  // before the block's next tile
  }
}

// Transposes the matrices of axis 0 and axis `across`, along which the input is contiguous.
template <class W, class Index>
Status transpose(cudaStream_t stream, const W* in, W* out, const StridedWalk& walk,
                 int across) noexcept {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(W));
  Tiles<W, Index> tiles{.in = in,
                        .out = out,
                        .walk = {},
                        .count = 1,
                        .rows = walk.size(0),
                        .columns = walk.size(across),
                        .in_stride = walk.stride(0) / kSize,
                        .out_stride = 1};
  std::int64_t step = 1;  // of the output
  for (int axis = 0; axis < walk.axes(); ++axis) {
    const std::int64_t stride = walk.stride(axis) / kSize;
    std::int64_t size = walk.size(axis);
    if (axis == across) tiles.out_stride = step;
    if (axis == 0 || axis == across) {
      const std::int64_t first_row = axis == 0 ? kTile : 0, first_column = kTile - first_row;
      size = divide_up(size, kTile);
      tiles.walk.add(size, {kTile * stride, kTile * step, first_row, first_column});
    } else {
      tiles.walk.add(size, {stride, step, 0, 0});
    }
    tiles.count *= size;
    step *= walk.size(axis);
  }
  return launch(stream, transpose_tiles<W, Index>, blocks_for(tiles.count, 1),
                dim3(kTile, kTileRows), tiles);
}

template <class W, class Index>
Walk<Index, kMaxRank> words_of(const StridedWalk& walk) noexcept {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(W));
  const std::int64_t words = walk.unit() / kSize;
  Walk<Index, kMaxRank> of_words;
  if (words > 1 || walk.axes() == 0) of_words.add(words, {1});
  for (int axis = 0; axis < walk.axes(); ++axis)
    of_words.add(walk.size(axis), {walk.stride(axis) / kSize});
  return of_words;
}

template <class W, class Body>
Status for_each_word(cudaStream_t stream, const Body& body, const StridedWalk& walk) noexcept {
  return for_each<1>(stream, body,
                     walk.unit() / static_cast<std::int64_t>(sizeof(W)) * walk.count(), true);
}

// Calls f(word, index) with values of the widest word that divides all sizes and strides, and of
// the index type.
template <class F>
Status with_walk(const StridedWalk& walk, const void* strided, const void* plain,
                 const F& f) noexcept {
  std::int64_t together = walk.unit() | walk.offset();
  for (int axis = 0; axis < walk.axes(); ++axis) together |= walk.stride(axis);
  return with_words(static_cast<std::size_t>(together), {strided, plain}, [&](auto word) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(word));
    return with_index(walk.unit() / kSize * walk.count(),
                      [&](auto index) { return f(word, index); });
  });
}

Status store(const KernelContext& context, const Buffer& in, const Buffer& out,
             const StridedWalk& walk, const std::int64_t* begin, std::int64_t last) noexcept {
  if (in.elements() == 0) return {};
  return with_walk(walk, out.data, in.data, [&]<class W, class Index>(W, Index) {
    const WordStore<W, Index> body{in.as<const W>(),
                                   out.as<W>(),
                                   words_of<W, Index>(walk),
                                   begin,
                                   last,
                                   walk.offset() / static_cast<std::int64_t>(sizeof(W))};
    return for_each_word<W>(stream_of(context), body, walk);
  });
}

}  // namespace

Status strided_copy(cudaStream_t stream, const void* from, void* to,
                    const StridedWalk& walk) noexcept {
  return with_walk(walk, from, to, [&]<class W, class Index>(W, Index) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(W));
    const W* const in = static_cast<const W*>(from) + walk.offset() / kSize;
    W* const out = static_cast<W*>(to);
    constexpr std::int64_t kLeast = 8;  // per side of a tile
    const int across = walk.unit() == kSize ? walk.contiguous_axis() : 0;
    if (across > 0 && std::min(walk.size(0), walk.size(across)) >= kLeast)
      return transpose<W, Index>(stream, in, out, walk, across);
    return for_each_word<W>(stream, WordLoad<W, Index>{in, out, words_of<W, Index>(walk)}, walk);
  });
}

Status strided_copy(const KernelContext& context, const Buffer& in, const Buffer& out,
                    const StridedWalk& walk) noexcept {
  if (out.elements() == 0) return {};
  return strided_copy(stream_of(context), in.data, out.data, walk);
}

Status strided_store(const KernelContext& context, const Buffer& in, const Buffer& out,
                     const StridedWalk& walk) noexcept {
  return store(context, in, out, walk, nullptr, 1);
}

Status strided_store_at(const KernelContext& context, const Buffer& in, const Buffer& out,
                        const StridedWalk& walk, const Buffer& begin, std::int64_t last) noexcept {
  return store(context, in, out, walk, begin.as<const std::int64_t>(), last);
}

}  // namespace ebb::cuda
