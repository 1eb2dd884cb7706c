#include "ebb/core/kernels/index.h"

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/plans/scatter_plan.h"
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
  Split<Index, 3> split;  // outer, chosen, inner
  std::int64_t size, inner;
  unsigned missing;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto [outer, k, column] = split(i);
    const auto index = static_cast<std::int64_t>(indices[kEach ? i : k]);
    const bool is_there = index >= 0 && index < size;
    out[i] = is_there ? in[(outer * size + index) * inner + column] : word_of<W>(missing);
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
                                          Split<Index, 3>({chosen, inner}),
                                          axis.size,
                                          inner,
                                          missing_byte(in.spec.dtype, attributes)};
    return for_each<1>(stream_of(context), body, count, true);
  });
}

// Elements summed by index, in the order of the indices. A block's threads form groups of `columns`
// threads; each row of a tile belongs to one group.
template <class T, class L>
struct Scatter {
  const T* in;
  const L* indices;
  T* out;
  Accumulate<T>* partial;  // sums of each part, where there are several
  ScatterPlan plan;
};

// All threads go through the indices, kThreads at a time. Indices within the tile are listed in
// order; then each thread adds its own elements. So the order of every sum is fixed.
template <class T, class L>
__global__ void __launch_bounds__(kThreads) scatter_kernel(Scatter<T, L> s) {
  using A = Accumulate<T>;
  constexpr int kWarps = kThreads / kWarp, kAtOnce = 8;
  __shared__ A sums[kTileBytes / sizeof(A)];
  __shared__ std::int32_t rows[kThreads];
  __shared__ std::int32_t from[kThreads];
  __shared__ int counts[kWarps];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const ScatterPlan& plan = s.plan;
  const int column = thread % plan.columns, group = thread / plan.columns;
  const int groups = kThreads / plan.columns;
  for (std::int64_t item = blockIdx.x; item < plan.tiles * plan.parts; item += gridDim.x) {
    const std::int64_t part = item / plan.tiles, tile = item - part * plan.tiles;
    const std::int64_t rest = tile / plan.tiles_of_columns, outer = rest / plan.tiles_of_rows;
    const std::int64_t first = (rest - outer * plan.tiles_of_rows) * plan.rows;
    const std::int64_t left = plan.size - first;
    const int count = left < plan.rows ? static_cast<int>(left) : plan.rows;
    const std::int64_t at = (tile - rest * plan.tiles_of_columns) * plan.columns + column;
    const bool is_there = at < plan.inner;
    for (int row = group; row < count; row += groups) sums[row * plan.columns + column] = A{};
    const std::int64_t behind =
        plan.chosen - part * plan.part < plan.part ? plan.chosen : (part + 1) * plan.part;
    for (std::int64_t base = part * plan.part; base < behind; base += kThreads) {
      const std::int64_t k = base + thread;
      const std::int64_t row =
          k < behind ? static_cast<std::int64_t>(s.indices[k]) - first : std::int64_t{-1};
      const bool is_hit = row >= 0 && row < count;
      const unsigned hits = __ballot_sync(kWholeWarp, is_hit);
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
      for (int hit = 0; hit < total; hit += kAtOnce) {  // loads do not wait for each other
        int place[kAtOnce];
        A x[kAtOnce];
        for (int j = 0; j < kAtOnce; ++j) {
          const int of = hit + j < total ? rows[hit + j] : 0;
          const bool adds = hit + j < total && is_there && of % groups == group;
          place[j] = adds ? of * plan.columns + column : -1;
          if (!adds) continue;
          const std::int64_t of_part = outer * plan.chosen + base + from[hit + j];
          x[j] = static_cast<A>(s.in[of_part * plan.inner + at]);
        }
        for (int j = 0; j < kAtOnce; ++j)
          if (place[j] >= 0) sums[place[j]] += x[j];
      }
    }
    if (!is_there) continue;
    for (int row = group; row < count; row += groups) {
      const std::int64_t result = (outer * plan.size + first + row) * plan.inner + at;
      const A sum = sums[row * plan.columns + column];
      if (plan.parts > 1)
        s.partial[part * plan.sums() + result] = sum;
      else
        s.out[result] = static_cast<T>(sum);
    }
  }
}

// Adds up the sums of parts, in float for 16 bits.
template <class T>
struct Total {
  using State = Accumulate<T>;
  T* out;

  __device__ State none() const { return 0; }
  __device__ void merge(State& total, State other) const { total += other; }
  __device__ void write(std::int64_t result, State total) const {
    out[result] = static_cast<T>(total);
  }
};

// Each thread goes through all indices of its column and adds the elements for its rows of the
// tile, in the order of the indices. One thread makes a sum, so the order is fixed.
template <class T, class L>
__global__ void __launch_bounds__(kThreads) scatter_columns_kernel(Scatter<T, L> s) {
  using A = Accumulate<T>;
  __shared__ A sums[kTileBytes / sizeof(A)];
  const int thread = static_cast<int>(threadIdx.x);
  const ScatterPlan& plan = s.plan;
  const int column = thread % plan.columns, group = thread / plan.columns;
  const int groups = kThreads / plan.columns;
  for (std::int64_t tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    const std::int64_t rest = tile / plan.tiles_of_columns, outer = rest / plan.tiles_of_rows;
    const std::int64_t first = (rest - outer * plan.tiles_of_rows) * plan.rows;
    const std::int64_t left = plan.size - first;
    const int count = left < plan.rows ? static_cast<int>(left) : plan.rows;
    const std::int64_t at = (tile - rest * plan.tiles_of_columns) * plan.columns + column;
    if (at >= plan.inner) continue;
    for (int row = group; row < count; row += groups) sums[row * plan.columns + column] = A{};
    std::int64_t from = outer * plan.chosen * plan.inner + at;
    for (std::int64_t k = 0; k < plan.chosen; ++k, from += plan.inner) {
      const std::int64_t row = static_cast<std::int64_t>(s.indices[from]) - first;
      if (row < 0 || row >= count || static_cast<int>(row) % groups != group) continue;
      sums[static_cast<int>(row) * plan.columns + column] += static_cast<A>(s.in[from]);
    }
    for (int row = group; row < count; row += groups)
      s.out[(outer * plan.size + first + row) * plan.inner + at] =
          static_cast<T>(sums[row * plan.columns + column]);
  }
}

template <class T, class L, class Index>
struct OneHot {
  const L* indices;
  T* out;
  Split<Index, 2> split;  // row, class

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto [row, column] = split(i);
    out[i] = T(static_cast<std::int64_t>(indices[row]) == column ? 1.f : 0.f);
  }
};

// Adds inputs up by `chosen` indices along the axis: each of them for a whole part, or (kEach) for
// an element.
template <bool kEach>
Status scatter(const KernelContext& context, std::int64_t chosen) noexcept {
  if (context.outputs[0].elements() == 0) return {};
  const IndexedAxis axis(context.outputs[0].spec.shape, context.attribute<IndexAttributes>());
  return for_indices(context.inputs[1], [&]<class L>(const L* index) {
    return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
      using A = Accumulate<T>;
      const ScatterPlan plan(axis, chosen, sizeof(A), !kEach);
      T* const out = context.outputs[0].as<T>();
      auto* const partial = static_cast<A*>(context.workspace);
      const Scatter<T, L> work{context.inputs[0].as<const T>(), index, out, partial, plan};
      const Status status =
          launch(stream_of(context), kEach ? scatter_columns_kernel<T, L> : scatter_kernel<T, L>,
                 blocks_for(plan.tiles * plan.parts, 1), kThreads, work);
      if (!status.ok() || plan.parts == 1) return status;
      return fold_parts(stream_of(context), Total<T>{out},
                        SumPlan{.results = plan.sums(), .parts = plan.parts}, partial);
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
  return scatter<false>(context, context.inputs[1].elements());
}

Status gather_backward(const KernelContext& context) {
  const IndexedAxis chosen(context.inputs[0].spec.shape, context.attribute<IndexAttributes>());
  return scatter<true>(context, chosen.size);
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const std::int64_t classes = count / indices.elements();
  return for_indices(indices, [&]<class L>(const L* index) {
    return for_floating(out.spec.dtype, [&]<class T>(T) {
      return with_index(count, [&]<class Index>(Index) {
        const OneHot<T, L, Index> body{index, out.as<T>(), Split<Index, 2>({classes})};
        return for_each<1>(stream_of(context), body, count, true);
      });
    });
  });
}

}  // namespace ebb::cuda
