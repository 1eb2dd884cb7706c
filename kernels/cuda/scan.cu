#include "ebb/core/kernels/scan.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

template <class T>
using RunningTotal = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

// Rows along an axis. A Work defines the value they carry and how elements change it.
struct Rows {
  std::int64_t size, inner, columns;  // number of rows: outer * inner
  bool reverse;

  Rows(const Shape& shape, int along, bool from_end) : reverse(from_end) {
    const IndexedAxis axis(shape, {along});
    size = axis.size;
    inner = axis.inner;
    columns = axis.outer * axis.inner;
  }
  __device__ std::int64_t begin(std::int64_t column) const {
    const std::int64_t outer = column / inner;
    return outer * size * inner + (column - outer * inner);
  }
  __device__ std::int64_t at(std::int64_t k) const { return (reverse ? size - 1 - k : k) * inner; }
};

// A running sum or product. out may be in: each element is read before it is written.
template <class T>
struct Scan {
  using Total = RunningTotal<T>;
  const T* in;
  T* out;
  bool exclusive, product;

  __device__ Total none() const { return product ? Total{1} : Total{0}; }
  __device__ Total with(Total total, Total x) const { return product ? total * x : total + x; }
  __device__ Total read(std::int64_t position) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Total>(in[position]);
    else
      return convert<double>(in[position]);
  }
  __device__ void write(std::int64_t position, Total before, Total x) const {
    out[position] = convert<T>(exclusive ? before : with(before, x));
  }
};

// The map c -> factor c + term.
struct Affine {
  double factor, term;
};

struct Recurrence {
  using Total = Affine;
  const double *a, *b, *w;  // b and w may be null
  double* out;

  __device__ Total none() const { return {1, 0}; }
  __device__ Total with(Total first, Total then) const {
    return {multiply_finite(then.factor, first.factor),
            multiply_finite(then.factor, first.term) + then.term};
  }
  __device__ Total read(std::int64_t position) const {
    return {a[position], b == nullptr ? 0 : b[position]};
  }
  __device__ void write(std::int64_t position, Total before, Total) const {
    const double carried = b == nullptr ? before.factor : before.term;  // from 1, 0
    out[position] = w == nullptr ? carried : multiply_finite(w[position], carried);
  }
};

template <class T>
__device__ T lane_before(T total, int distance) {
  return __shfl_up_sync(kWholeWarp, total, static_cast<unsigned>(distance));
}
__device__ inline Affine lane_before(Affine total, int distance) {
  return {lane_before(total.factor, distance), lane_before(total.term, distance)};
}

// A thread scans a column; neighbouring threads have neighbouring columns.
template <class Work>
__global__ void scan_columns_kernel(Rows rows, Work work) {
  using Total = typename Work::Total;
  for (std::int64_t column = grid_thread(); column < rows.columns; column += grid_threads()) {
    const std::int64_t begin = rows.begin(column);
    Total total = work.none();
    for (std::int64_t k = 0; k < rows.size; ++k) {
      const std::int64_t position = begin + rows.at(k);
      const Total x = work.read(position);
      work.write(position, total, x);
      total = work.with(total, x);
    }
  }
}

// A block scans a row, kThreads * kEach elements at a time. Each thread scans its kEach neighbours;
// totals of the threads before it are added within warps, then across warps.
template <class Work>
__global__ void __launch_bounds__(kThreads) scan_rows_kernel(Rows rows, Work work) {
  using Total = typename Work::Total;
  constexpr int kEach = 4, kWarps = kThreads / kWarp;
  __shared__ Total of_warps[kWarps];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  for (std::int64_t column = blockIdx.x; column < rows.columns; column += gridDim.x) {
    const std::int64_t begin = rows.begin(column);
    Total total = work.none();
    for (std::int64_t base = 0; base < rows.size; base += kThreads * kEach) {
      const std::int64_t first = base + thread * kEach;
      Total x[kEach], own = work.none();
      for (int j = 0; j < kEach; ++j) {
        x[j] = first + j < rows.size ? work.read(begin + rows.at(first + j)) : work.none();
        own = work.with(own, x[j]);
      }
      Total through = own;  // total of the lanes up to this one
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const Total other = lane_before(through, distance);
        if (lane >= distance) through = work.with(other, through);
      }
      __syncthreads();  // of_warps may still be read
      if (lane == kWarp - 1) of_warps[warp] = through;
      __syncthreads();
      Total before = total;
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) before = work.with(before, of_warps[other]);
        total = work.with(total, of_warps[other]);
      }
      const Total of_lanes = lane_before(through, 1);
      if (lane > 0) before = work.with(before, of_lanes);
      for (int j = 0; j < kEach; ++j) {
        if (first + j < rows.size) work.write(begin + rows.at(first + j), before, x[j]);
        before = work.with(before, x[j]);
      }
    }
  }
}

template <class Work>
Status run(const KernelContext& context, const Rows& rows, const Work& work) {
  if (context.outputs[0].elements() == 0) return {};
  const bool by_columns = rows.inner >= kWarp || rows.size <= kWarp;
  return launch(stream_of(context), by_columns ? scan_columns_kernel<Work> : scan_rows_kernel<Work>,
                blocks_for(rows.columns, by_columns ? kThreads : 1), kThreads, rows, work);
}

}  // namespace

Status scan(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ScanAttributes>();
  const Rows rows(in.spec.shape, how.axis, how.reverse != 0);
  const auto of = [&]<class T>(T) {
    return run(context, rows,
               Scan<T>{in.as<const T>(), out.as<T>(), how.exclusive != 0, how.product != 0});
  };
  return is_floating(in.spec.dtype) ? for_floating(in.spec.dtype, of)
                                    : for_integer(in.spec.dtype, of);
}

Status recurrence(const KernelContext& context) {
  const auto& how = context.attribute<RecurrenceAttributes>();
  const auto values = [&](std::size_t i) { return context.inputs[i].as<const double>(); };
  return run(context, Rows(context.outputs[0].spec.shape, how.axis, how.reverse != 0),
             Recurrence{values(0), how.has_sum ? values(1) : nullptr,
                        how.has_weight ? values(context.inputs.size() - 1) : nullptr,
                        context.outputs[0].as<double>()});
}

}  // namespace ebb::cuda
