#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/indices.h"
#include "ebb/kernels/cuda/scatter.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

template <class W, class L, class Index>
struct Gather {
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
    const auto index = static_cast<std::int64_t>(indices[i]);
    const bool is_there = index >= 0 && index < size;
    const std::int64_t from = static_cast<std::int64_t>(outer) * size + index;
    out[i] = is_there ? in[from * static_cast<std::int64_t>(inner.divisor) + column]
                      : word_of<W>(missing);
  }
};

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

}  // namespace

Status gather(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(in.spec.shape, attributes), chosen(out.spec.shape, attributes);
  const unsigned missing = missing_byte(in.spec.dtype, attributes);
  cudaStream_t stream = stream_of(context);
  return for_indices(indices, [&]<class L>(const L* index) {
    return with_words(size_of(in.spec.dtype), {in.data, out.data}, [&]<class W>(W) {
      if constexpr (sizeof(W) > 8) {
        return Status();  // no element is as wide as that
      } else {
        const auto choose = [&]<class Index>(Index) {
          const Gather<W, L, Index> body{in.as<const W>(),
                                         index,
                                         out.as<W>(),
                                         Divider<Index>(axis.inner),
                                         Divider<Index>(chosen.size),
                                         axis.size,
                                         missing};
          return for_each<1>(stream, body, count, true);
        };
        return is_short(count) ? choose(std::uint32_t{}) : choose(std::uint64_t{});
      }
    });
  });
}

Status gather_backward(const KernelContext& context) {
  if (context.outputs[0].elements() == 0) return {};
  return for_indices(context.inputs[1], [&]<class L>(const L* index) {
    return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
      const IndexedAxis chosen(context.inputs[0].spec.shape, context.attribute<IndexAttributes>());
      const Scatter<T, L> scatter(context, index, chosen.size);
      return launch(stream_of(context), scatter_columns_kernel<T, L>, blocks_for(scatter.tiles, 1),
                    kThreads, scatter);
    });
  });
}

}  // namespace ebb::cuda
