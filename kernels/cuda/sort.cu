#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/order_key.h"
#include "ebb/kernels/cuda/plans/sort_plan.h"

namespace ebb::cuda {
namespace {

// The rows to sort. The larger the key, the earlier its element stands. NaN stands last ascending
// and first descending.
template <class T>
struct SortedRows {
  const T* in;
  std::int64_t rows, size;
  bool descending;

  __device__ First at(std::int64_t row, std::int64_t position) const {
    const std::uint64_t key = key_of(in[row * size + position], false);
    return {descending ? key : ~key, position};
  }
};

// Sorts runs of kSortTile neighbours by a bitonic network; padding stands last. Writes the first
// `count` indices of each row of runs.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sort_tiles_kernel(SortedRows<T> work, std::int64_t* out, std::int64_t count) {
  __shared__ First elements[kSortTile];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t tiles = divide_up(work.size, kSortTile);
  for (std::int64_t item = blockIdx.x; item < work.rows * tiles; item += gridDim.x) {
    const std::int64_t row = item / tiles, first = (item - row * tiles) * kSortTile;
    const std::int64_t rest = work.size - first;
    const int there = rest < kSortTile ? static_cast<int>(rest) : kSortTile;
    int width = 2;
    while (width < there) width *= 2;
    for (int i = thread; i < width; i += kThreads)
      elements[i] = i < there ? work.at(row, first + i) : First{0, first + i};
    __syncthreads();
    for (int run = 2; run <= width; run *= 2)
      for (int apart = run / 2; apart > 0; apart /= 2) {
        for (int pair = thread; pair < width / 2; pair += kThreads) {
          const int a = pair / apart * 2 * apart + pair % apart, b = a + apart;
          const bool upwards = (a & run) == 0;
          const First x = elements[a], y = elements[b];
          if (y.is_before(x) == upwards) {
            elements[a] = y;
            elements[b] = x;
          }
        }
        __syncthreads();
      }
    for (int i = thread; i < there; i += kThreads)
      if (first + i < count) out[row * count + first + i] = elements[i].position;
    __syncthreads();
  }
}

// Merges pairs of sorted runs of `width` indices. An index moves behind its predecessors in its own
// run and in the other one, where a binary search counts them. Writes the first `count` of each
// row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    merge_runs_kernel(SortedRows<T> work, const std::int64_t* in, std::int64_t* out,
                      std::int64_t width, std::int64_t count) {
  for (std::int64_t i = grid_thread(); i < work.rows * work.size; i += grid_threads()) {
    const std::int64_t row = i / work.size, at = i - row * work.size;
    const std::int64_t begin = at / (2 * width) * (2 * width);
    const bool is_second = at - begin >= width;
    const std::int64_t other = is_second ? begin : begin + width;
    const std::int64_t rest = work.size - other;
    const std::int64_t* const indices = in + row * work.size;
    const First own = work.at(row, indices[at]);
    std::int64_t low = 0, high = rest < 0 ? 0 : rest < width ? rest : width;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (work.at(row, indices[other + middle]).is_before(own))
        low = middle + 1;
      else
        high = middle;
    }
    const std::int64_t to = begin + (at - begin) % width + low;
    if (to < count) out[row * count + to] = own.position;
  }
}

// Selects the first elements of a row one by one, each in a sweep over the elements behind the
// last.
template <class T>
__global__ void __launch_bounds__(kThreads)
    select_first_kernel(SortedRows<T> work, std::int64_t* out, std::int64_t count) {
  __shared__ First firsts[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t row = blockIdx.x; row < work.rows; row += gridDim.x) {
    First last{~std::uint64_t{0}, -1};
    for (std::int64_t k = 0; k < count; ++k) {
      First first = First::none();
      for (std::int64_t i = thread; i < work.size; i += blockDim.x) {
        const std::uint64_t key = work.at(row, i).key;
        if (key > last.key || (key == last.key && i <= last.position)) continue;
        if (key > first.key || first.position > i) first = {key, i};
      }
      firsts[thread] = first;
      __syncthreads();
      for (int half = kThreads / 2; half > 0; half /= 2) {
        if (thread < half && firsts[thread + half].is_before(firsts[thread]))
          firsts[thread] = firsts[thread + half];
        __syncthreads();
      }
      last = firsts[0];
      if (thread == 0) out[row * count + k] = last.position;
      __syncthreads();
    }
  }
}

// Runs the sweeps. The last one writes the output, the others two arrays in turn.
template <class T>
Status run(const KernelContext& context, const SortedRows<T>& work, const SortPlan& plan) noexcept {
  cudaStream_t stream = stream_of(context);
  auto* const out = context.outputs[0].as<std::int64_t>();
  if (plan.selects())
    return launch(stream, select_first_kernel<T>, blocks_for(plan.rows, 1), kThreads, work, out,
                  plan.count);
  auto* const workspace = static_cast<std::int64_t*>(context.workspace);
  std::int64_t* const arrays[] = {workspace,
                                  plan.arrays() == 2 ? workspace + plan.rows * plan.size : out};
  const std::int64_t tiles = plan.rows * divide_up(plan.size, kSortTile);
  int left = plan.merges();
  const auto target = [&] { return left == 0 ? out : arrays[(left - 1) % 2]; };
  const auto wanted = [&] { return left == 0 ? plan.count : plan.size; };
  Status status = launch(stream, sort_tiles_kernel<T>, blocks_for(tiles, 1), kThreads, work,
                         target(), wanted());
  const std::int64_t* from = target();
  for (std::int64_t width = kSortTile; status.ok() && left > 0; width *= 2) {
    --left;
    status = launch(stream, merge_runs_kernel<T>, blocks_for(plan.rows * plan.size), kThreads, work,
                    from, target(), width, wanted());
    status.refused = false;  // earlier sweeps have written
    from = target();
  }
  return status;
}

}  // namespace

Status argsort(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const std::int64_t count = out.spec.shape.dim(-1);
  const SortPlan plan{out.elements() / count, in.spec.shape.dim(-1), count};
  const bool descending = context.attribute<SortAttributes>().descending != 0;
  return for_stored(in.spec.dtype, [&]<class T>(T) {
    return run(context, SortedRows<T>{in.as<const T>(), plan.rows, plan.size, descending}, plan);
  });
}

}  // namespace ebb::cuda
