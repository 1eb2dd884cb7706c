#include "ebb/core/kernels/index.h"

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/indices.h"
#include "ebb/kernels/cuda/scatter.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

// Copies chosen parts of an axis, in words.
template <class W, class L, class Index>
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
    const auto index = static_cast<std::int64_t>(indices[row - outer * chosen.divisor]);
    const bool is_there = index >= 0 && index < size;
    const std::int64_t from = static_cast<std::int64_t>(outer) * size + index;
    out[i] = is_there ? in[from * static_cast<std::int64_t>(inner.divisor) + column]
                      : word_of<W>(missing);
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
      int place = __popc(hits & ((1u << lane) - 1)), total = 0;
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) place += counts[other];
        total += counts[other];
      }
      if (is_hit) {
        rows[place] = static_cast<std::int32_t>(row);
        from[place] = thread;
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

}  // namespace

Status index_select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  const std::int64_t count = out.elements(), chosen = indices.elements();
  if (count == 0) return {};
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(in.spec.shape, attributes);
  const auto element = static_cast<std::int64_t>(size_of(in.spec.dtype));
  const std::int64_t part = axis.inner * element;
  const unsigned missing = missing_byte(in.spec.dtype, attributes);
  cudaStream_t stream = stream_of(context);
  return for_indices(indices, [&]<class L>(const L* index) {
    return with_words(static_cast<std::size_t>(part), {in.data, out.data}, [&]<class W>(W) {
      const std::int64_t inner = part / static_cast<std::int64_t>(sizeof(W));
      const std::int64_t words = axis.outer * chosen * inner;
      const auto choose = [&]<class Index>(Index) {
        const Choose<W, L, Index> body{
            in.as<const W>(),       index,     out.as<W>(), Divider<Index>(inner),
            Divider<Index>(chosen), axis.size, missing};
        return for_each<1>(stream, body, words, true);
      };
      return is_short(words) ? choose(std::uint32_t{}) : choose(std::uint64_t{});
    });
  });
}

Status index_select_backward(const KernelContext& context) {
  if (context.outputs[0].elements() == 0) return {};
  return for_indices(context.inputs[1], [&]<class L>(const L* index) {
    return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
      const Scatter<T, L> scatter(context, index, context.inputs[1].elements());
      return launch(stream_of(context), scatter_kernel<T, L>, blocks_for(scatter.tiles, 1),
                    kThreads, scatter);
    });
  });
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const std::int64_t classes = count / indices.elements();
  return for_indices(indices, [&]<class L>(const L* index) {
    return for_floating(out.spec.dtype, [&]<class T>(T) {
      const auto put = [&]<class Index>(Index) {
        const OneHot<T, L, Index> body{index, out.as<T>(), Divider<Index>(classes)};
        return for_each<1>(stream_of(context), body, count, true);
      };
      return is_short(count) ? put(std::uint32_t{}) : put(std::uint64_t{});
    });
  });
}

}  // namespace ebb::cuda
