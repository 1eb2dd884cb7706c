#include "ebb/core/kernels/scan.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/group.h"

namespace ebb::cuda {
namespace {

template <class T>
using RunningTotal = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

// in is read before out, which may be in, is written.
template <class T>
struct Scan {
  using Total = RunningTotal<T>;
  const T* in;
  T* out;
  std::int64_t size, inner, columns;  // of all rows that the axis is one of: outer * inner
  bool exclusive, reverse, product;

  __device__ Total none() const { return product ? Total{1} : Total{0}; }
  __device__ Total with(Total total, Total x) const { return product ? total * x : total + x; }

  __device__ std::int64_t begin(std::int64_t column) const {
    const std::int64_t outer = column / inner;
    return outer * size * inner + (column - outer * inner);
  }
  __device__ std::int64_t at(std::int64_t k) const { return (reverse ? size - 1 - k : k) * inner; }
  __device__ Total read(std::int64_t place) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Total>(in[place]);
    else
      return convert<double>(in[place]);
  }
  __device__ void write(std::int64_t place, Total before, Total x) const {
    out[place] = convert<T>(exclusive ? before : with(before, x));
  }
};

// Neighbouring threads have neighbouring columns.
template <class T>
__global__ void scan_columns_kernel(Scan<T> work) {
  using Total = RunningTotal<T>;
  for (std::int64_t column = grid_thread(); column < work.columns; column += grid_threads()) {
    const std::int64_t begin = work.begin(column);
    Total total = work.none();
    for (std::int64_t k = 0; k < work.size; ++k) {
      const std::int64_t place = begin + work.at(k);
      const Total x = work.read(place);
      work.write(place, total, x);
      total = work.with(total, x);
    }
  }
}

// A block goes through a column, kThreads * kEach elements at a time: each thread goes through its
// own neighbours, and what the threads before it have comes from within warps and then from warps.
template <class T>
__global__ void __launch_bounds__(kThreads) scan_rows_kernel(Scan<T> work) {
  using Total = RunningTotal<T>;
  constexpr int kEach = 4, kWarps = kThreads / kWarp;
  __shared__ Total of_warps[kWarps];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  for (std::int64_t column = blockIdx.x; column < work.columns; column += gridDim.x) {
    const std::int64_t begin = work.begin(column);
    Total total = work.none();
    for (std::int64_t base = 0; base < work.size; base += kThreads * kEach) {
      const std::int64_t first = base + thread * kEach;
      Total x[kEach], own = work.none();
      for (int j = 0; j < kEach; ++j) {
        x[j] = first + j < work.size ? work.read(begin + work.at(first + j)) : work.none();
        own = work.with(own, x[j]);
      }
      Total through = own;  // of the lanes up to this one
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const Total other = __shfl_up_sync(kWholeWarp, through, static_cast<unsigned>(distance));
        if (lane >= distance) through = work.with(other, through);
      }
      __syncthreads();  // those of warps may still be read
      if (lane == kWarp - 1) of_warps[warp] = through;
      __syncthreads();
      Total before = total;
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) before = work.with(before, of_warps[other]);
        total = work.with(total, of_warps[other]);
      }
      const Total of_lanes = __shfl_up_sync(kWholeWarp, through, 1u);
      if (lane > 0) before = work.with(before, of_lanes);
      for (int j = 0; j < kEach; ++j) {
        if (first + j < work.size) work.write(begin + work.at(first + j), before, x[j]);
        before = work.with(before, x[j]);
      }
    }
  }
}

}  // namespace

Status scan(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ScanAttributes>();
  if (out.elements() == 0) return {};
  const IndexedAxis axis(in.spec.shape, {how.axis});
  const auto run = [&]<class T>(T) {
    const Scan<T> work{
        in.as<const T>(),        out.as<T>(),        axis.size,        axis.inner,
        axis.outer * axis.inner, how.exclusive != 0, how.reverse != 0, how.product != 0};
    const bool by_columns = axis.inner >= kWarp || axis.size <= kWarp;
    const unsigned blocks = blocks_for(work.columns, by_columns ? kThreads : 1);
    return launch(stream_of(context), by_columns ? scan_columns_kernel<T> : scan_rows_kernel<T>,
                  blocks, kThreads, work);
  };
  if (in.spec.dtype == DType::i32) return run(std::int32_t{});
  if (in.spec.dtype == DType::i64) return run(std::int64_t{});
  return for_floating(in.spec.dtype, run);
}

}  // namespace ebb::cuda
