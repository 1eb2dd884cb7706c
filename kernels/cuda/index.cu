#include "ebb/core/kernels/index.h"

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

// Copies chosen parts of an axis, in words. An index is for a whole part, or (kEach) for an
// element.
template <bool kEach, class W, class L, class Index>
struct Choose {
  const W* in;
  const L* indices;
  W* out;
  Divider<Index> inner, chosen;
  std::int64_t size;
  unsigned missing;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto at = static_cast<Index>(i), row = inner.quotient(at), outer = chosen.quotient(row);
    const auto column = static_cast<std::int64_t>(at - row * inner.divisor);
    const auto k = kEach ? i : static_cast<std::int64_t>(row - outer * chosen.divisor);
    const auto index = static_cast<std::int64_t>(indices[k]);
    const bool is_there = index >= 0 && index < size;
    const std::int64_t from = static_cast<std::int64_t>(outer) * size + index;
    out[i] = is_there ? in[from * static_cast<std::int64_t>(inner.divisor) + column]
                      : word_of<W>(missing);
  }
};

template <bool kEach, class W, class L>
Status choose(const KernelContext& context, const L* index, std::int64_t inner, std::int64_t chosen,
              std::int64_t count) noexcept {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(in.spec.shape, attributes);
  return with_index(count, [&]<class Index>(Index) {
    const Choose<kEach, W, L, Index> body{in.as<const W>(),
                                          index,
                                          out.as<W>(),
                                          Divider<Index>(inner),
                                          Divider<Index>(chosen),
                                          axis.size,
                                          missing_byte(in.spec.dtype, attributes)};
    return for_each<1>(stream_of(context), body, count, true);
  });
}

// Bytes of a tile's sums in shared memory, of elements summed by index in the order of the indices.
// A tile is some neighbouring rows of the axis by some columns. A block's threads form groups of
// `columns` threads; each row of the tile belongs to one group.
constexpr int kTileBytes = 32 << 10;

template <class T, class L>
struct Scatter {
  const T* in;
  const L* indices;
  T* out;
  IndexedAxis axis;
  std::int64_t chosen;
  std::int64_t tiles_of_columns, tiles_of_rows, tiles;
  int columns;  // of a tile, a power of two
  int rows;

  // count: number of indices along the axis.
  Scatter(const KernelContext& context, const L* index, std::int64_t count) noexcept
      : in(context.inputs[0].as<const T>()),
        indices(index),
        out(context.outputs[0].as<T>()),
        axis(context.outputs[0].spec.shape, context.attribute<IndexAttributes>()),
        chosen(count),
        columns(1) {
    while (columns < kThreads && columns < axis.inner) columns *= 2;
    rows = kTileBytes / static_cast<int>(sizeof(Accumulate<T>)) / columns;
    tiles_of_columns = divide_up(axis.inner, columns);
    tiles_of_rows = divide_up(axis.size, rows);
    tiles = axis.outer * tiles_of_rows * tiles_of_columns;
  }
};

// All threads go through the indices, kThreads at a time. Indices within the tile are listed in
// order; then each thread adds its own elements. So the order of every sum is fixed.
template <class T, class L>
__global__ void __launch_bounds__(kThreads) scatter_kernel(Scatter<T, L> s) {
  using A = Accumulate<T>;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ A sums[kTileBytes / sizeof(A)];
  __shared__ std::int32_t rows[kThreads];
  __shared__ std::int32_t from[kThreads];
  __shared__ int counts[kWarps];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int column = thread % s.columns, group = thread / s.columns;
  const int groups = kThreads / s.columns;
  for (std::int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    const std::int64_t rest = tile / s.tiles_of_columns, outer = rest / s.tiles_of_rows;
    const std::int64_t first = (rest - outer * s.tiles_of_rows) * s.rows;
    const std::int64_t left = s.axis.size - first;
    const int count = left < s.rows ? static_cast<int>(left) : s.rows;
    const std::int64_t at = (tile - rest * s.tiles_of_columns) * s.columns + column;
    const bool is_there = at < s.axis.inner;
    for (int row = group; row < count; row += groups) sums[row * s.columns + column] = A{};
    for (std::int64_t base = 0; base < s.chosen; base += kThreads) {
      const std::int64_t k = base + thread;
      const std::int64_t row =
          k < s.chosen ? static_cast<std::int64_t>(s.indices[k]) - first : std::int64_t{-1};
      const bool is_hit = row >= 0 && row < count;
      const unsigned hits = __ballot_sync(kWholeWarp, is_hit);
      __syncthreads();  // the list may still be read
      if (lane == 0) counts[warp] = __popc(hits);
      __syncthreads();
      int position = __popc(hits & ((1u << lane) - 1)), total = 0;
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) position += counts[other];
        total += counts[other];
      }
      if (is_hit) {
        rows[position] = static_cast<std::int32_t>(row);
        from[position] = thread;
      }
      __syncthreads();
      for (int hit = 0; hit < total; ++hit) {
        const int of = rows[hit];
        if (!is_there || of % groups != group) continue;
        const std::int64_t part = outer * s.chosen + base + from[hit];
        sums[of * s.columns + column] += static_cast<A>(s.in[part * s.axis.inner + at]);
      }
    }
    if (is_there)
      for (int row = group; row < count; row += groups)
        s.out[(outer * s.axis.size + first + row) * s.axis.inner + at] =
            static_cast<T>(sums[row * s.columns + column]);
  }
}

// Each thread goes through all indices of its column and adds the elements for its rows of the
// tile, in the order of the indices. One thread makes a sum, so the order is fixed.
template <class T, class L>
__global__ void __launch_bounds__(kThreads) scatter_columns_kernel(Scatter<T, L> s) {
  using A = Accumulate<T>;
  __shared__ A sums[kTileBytes / sizeof(A)];
  const int thread = static_cast<int>(threadIdx.x);
  const int column = thread % s.columns, group = thread / s.columns;
  const int groups = kThreads / s.columns;
  for (std::int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    const std::int64_t rest = tile / s.tiles_of_columns, outer = rest / s.tiles_of_rows;
    const std::int64_t first = (rest - outer * s.tiles_of_rows) * s.rows;
    const std::int64_t left = s.axis.size - first;
    const int count = left < s.rows ? static_cast<int>(left) : s.rows;
    const std::int64_t at = (tile - rest * s.tiles_of_columns) * s.columns + column;
    if (at >= s.axis.inner) continue;
    for (int row = group; row < count; row += groups) sums[row * s.columns + column] = A{};
    std::int64_t from = outer * s.chosen * s.axis.inner + at;
    for (std::int64_t k = 0; k < s.chosen; ++k, from += s.axis.inner) {
      const std::int64_t row = static_cast<std::int64_t>(s.indices[from]) - first;
      if (row < 0 || row >= count || static_cast<int>(row) % groups != group) continue;
      sums[static_cast<int>(row) * s.columns + column] += static_cast<A>(s.in[from]);
    }
    for (int row = group; row < count; row += groups)
      s.out[(outer * s.axis.size + first + row) * s.axis.inner + at] =
          static_cast<T>(sums[row * s.columns + column]);
  }
}

template <class T, class L, class Index>
struct OneHot {
  const L* indices;
  T* out;
  Divider<Index> classes;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto at = static_cast<Index>(i), row = classes.quotient(at);
    const auto column = static_cast<std::int64_t>(at - row * classes.divisor);
    out[i] = T(static_cast<std::int64_t>(indices[row]) == column ? 1.f : 0.f);
  }
};

// Launches a kernel that adds inputs up by `chosen` indices along the axis.
template <class Of>
Status scatter(const KernelContext& context, std::int64_t chosen, const Of& kernel_of) noexcept {
  if (context.outputs[0].elements() == 0) return {};
  return for_indices(context.inputs[1], [&]<class L>(const L* index) {
    return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
      const Scatter<T, L> work(context, index, chosen);
      return launch(stream_of(context), kernel_of(work), blocks_for(work.tiles, 1), kThreads, work);
    });
  });
}

}  // namespace

Status index_select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const IndexedAxis axis(in.spec.shape, context.attribute<IndexAttributes>());
  const auto part = static_cast<std::size_t>(axis.inner) * size_of(in.spec.dtype);
  return for_indices(indices, [&]<class L>(const L* index) {
    return with_words(part, {in.data, out.data}, [&]<class W>(W) {
      const auto inner = static_cast<std::int64_t>(part / sizeof(W));
      const std::int64_t chosen = indices.elements();
      return choose<false, W>(context, index, inner, chosen, axis.outer * chosen * inner);
    });
  });
}

Status gather(const KernelContext& context) {
  const Buffer &indices = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const IndexedAxis chosen(out.spec.shape, context.attribute<IndexAttributes>());
  return for_indices(indices, [&]<class L>(const L* index) {
    return for_word(out.spec.dtype, [&]<class W>(W) {
      return choose<true, W>(context, index, chosen.inner, chosen.size, out.elements());
    });
  });
}

Status index_select_backward(const KernelContext& context) {
  return scatter(context, context.inputs[1].elements(),
                 []<class T, class L>(const Scatter<T, L>&) { return scatter_kernel<T, L>; });
}

Status gather_backward(const KernelContext& context) {
  const IndexedAxis chosen(context.inputs[0].spec.shape, context.attribute<IndexAttributes>());
  return scatter(context, chosen.size, []<class T, class L>(const Scatter<T, L>&) {
    return scatter_columns_kernel<T, L>;
  });
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const std::int64_t classes = count / indices.elements();
  return for_indices(indices, [&]<class L>(const L* index) {
    return for_floating(out.spec.dtype, [&]<class T>(T) {
      return with_index(count, [&]<class Index>(Index) {
        const OneHot<T, L, Index> body{index, out.as<T>(), Divider<Index>(classes)};
        return for_each<1>(stream_of(context), body, count, true);
      });
    });
  });
}

}  // namespace ebb::cuda
