#include "ebb/core/kernels/scan.h"

#include <cub/block/block_scan.cuh>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {
namespace {

// value * 2^exponent, where value is 0, infinite, NaN or in [0.5, 1). Parts of a row are multiplied
// before it is known what stands ahead of them, and a double may overflow there: 0 would become
// NaN.
struct Scaled {
  double value;
  std::int64_t exponent;

  Scaled() = default;
  __device__ explicit Scaled(double x, std::int64_t power = 0) : value(x), exponent(power) {
    if (x == 0 || x - x != 0) return;  // 0, infinite or NaN
    int more = 0;
    value = frexp(x, &more);
    exponent += more;
  }
  __device__ friend Scaled operator*(Scaled a, Scaled b) {
    return Scaled(a.value * b.value, a.exponent + b.exponent);
  }
  __device__ explicit operator double() const {
    constexpr std::int64_t kMost = 4096;  // beyond any double's
    return ldexp(value, static_cast<int>(min(max(exponent, -kMost), kMost)));
  }
};

// Rows along an axis, a sum of the plan each. A Work defines the value they carry and how elements
// change it.
struct Rows {
  SumPlan plan;
  std::int64_t inner;  // number of rows: outer * inner
  bool reverse;

  __device__ std::int64_t begin(std::int64_t column) const {
    const std::int64_t outer = column / inner;
    return outer * plan.terms * inner + (column - outer * inner);
  }
  __device__ std::int64_t at(std::int64_t k) const {
    return (reverse ? plan.terms - 1 - k : k) * inner;
  }
  __device__ std::int64_t end(std::int64_t part) const {
    return min((part + 1) * plan.part, plan.terms);
  }
};

// A running sum or product. out may be in: each element is read before it is written. Of floating
// elements, sums have Totals of double, products Scaled.
template <class T, class As>
struct Scan {
  using Total = As;
  const T* in;
  T* out;
  bool exclusive, product;

  __device__ Total none() const { return Total(product ? 1 : 0); }
  __device__ Total with(Total total, Total x) const {
    if constexpr (std::is_same_v<Total, Scaled>)
      return total * x;
    else
      return product ? total * x : total + x;
  }
  __device__ Total read(std::int64_t position) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Total>(in[position]);
    else
      return Total(convert<double>(in[position]));
  }
  __device__ void write(std::int64_t position, Total before, Total x) const {
    const Total total = exclusive ? before : with(before, x);
    if constexpr (std::is_integral_v<T>)
      out[position] = convert<T>(total);
    else
      out[position] = convert<T>(static_cast<double>(total));
  }
};

// The map c -> factor c + term. The factor of a part may overflow where the whole row's does not.
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

// Both kernels first only find the totals of parts, where there are several. Then each part is
// scanned from the total of the parts before it. So the order of every sum is fixed.

// A thread scans a part of a column; neighbouring threads have neighbouring columns.
template <class Work>
__global__ void scan_columns_kernel(Rows rows, Work work, typename Work::Total* totals,
                                    bool only_totals) {
  using Total = typename Work::Total;
  const std::int64_t columns = rows.plan.results;
  for (std::int64_t i = grid_thread(); i < columns * rows.plan.parts; i += grid_threads()) {
    const std::int64_t part = i / columns, column = i - part * columns;
    const std::int64_t begin = rows.begin(column);
    Total total = work.none();
    for (std::int64_t before = column; before < i && !only_totals; before += columns)
      total = work.with(total, totals[before]);
    for (std::int64_t k = part * rows.plan.part; k < rows.end(part); ++k) {
      const std::int64_t position = begin + rows.at(k);
      const Total x = work.read(position);
      if (!only_totals) work.write(position, total, x);
      total = work.with(total, x);
    }
    if (only_totals) totals[i] = total;
  }
}

// A block scans a part of a row, kTurn elements at a time, after a turn for the totals of the parts
// before. Three blocks on a multiprocessor leave enough registers; nvcc by itself aims at more, and
// spills for i64 on 10.0.
template <class Work>
__global__ void __launch_bounds__(kThreads, 3)
    scan_rows_kernel(Rows rows, Work work, typename Work::Total* totals, bool only_totals) {
  using Total = typename Work::Total;
  using Turn = cub::BlockScan<Total, kThreads>;
  constexpr int kEach = 4, kTurn = kThreads * kEach;
  static_assert(kTurn >= kMostParts);
  __shared__ typename Turn::TempStorage storage;
  const auto then = [&](const Total& a, const Total& b) { return work.with(a, b); };
  const std::int64_t parts = rows.plan.parts;
  for (std::int64_t item = blockIdx.x; item < rows.plan.results * parts; item += gridDim.x) {
    const std::int64_t column = item / parts, part = item - column * parts;
    const std::int64_t begin = rows.begin(column), from = part * rows.plan.part;
    const std::int64_t end = rows.end(part);
    Total total = work.none();
    for (std::int64_t base = only_totals || part == 0 ? from : from - kTurn; base < end;
         base += kTurn) {
      const bool of_parts = base < from;
      const std::int64_t first = (of_parts ? 0 : base) + static_cast<int>(threadIdx.x) * kEach;
      const std::int64_t limit = of_parts ? part : end;
      Total x[kEach], before[kEach], of_turn;
      for (int j = 0; j < kEach; ++j)
        x[j] = first + j >= limit ? work.none()
               : of_parts         ? totals[item - part + first + j]
                                  : work.read(begin + rows.at(first + j));
      Turn(storage).ExclusiveScan(x, before, total, then, of_turn);
      __syncthreads();  // storage may still be read
      total = work.with(total, of_turn);
      if (of_parts || only_totals) continue;
      for (int j = 0; j < kEach; ++j)
        if (first + j < limit) work.write(begin + rows.at(first + j), before[j], x[j]);
    }
    if (only_totals && threadIdx.x == 0) totals[item] = total;
  }
}

template <class Work>
Status run(const KernelContext& context, int along, bool reverse, const Work& work) {
  if (context.outputs[0].elements() == 0) return {};
  const IndexedAxis axis(context.outputs[0].spec.shape, {along});
  const SumPlan plan = plan_scan(axis);
  const Rows rows{plan, axis.inner, reverse};
  const auto pass = [&](bool only_totals) {
    return launch(stream_of(context),
                  plan.by_rows ? scan_rows_kernel<Work> : scan_columns_kernel<Work>,
                  blocks_for(plan.results * plan.parts, plan.by_rows ? 1 : kThreads), kThreads,
                  rows, work, static_cast<typename Work::Total*>(context.workspace), only_totals);
  };
  const Status status = plan.parts > 1 ? pass(true) : Status();
  return status.ok() ? pass(false) : status;
}

}  // namespace

Status scan(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ScanAttributes>();
  const auto scanned = [&]<class T, class Total>(T, Total) {
    return run(context, how.axis, how.reverse != 0,
               Scan<T, Total>{in.as<const T>(), out.as<T>(), how.exclusive != 0, how.product != 0});
  };
  if (!is_floating(in.spec.dtype))
    return for_integer(in.spec.dtype, [&](auto x) { return scanned(x, std::uint64_t{}); });
  return for_floating(in.spec.dtype, [&](auto x) {
    return how.product != 0 ? scanned(x, Scaled()) : scanned(x, double{});
  });
}

Status recurrence(const KernelContext& context) {
  const auto& how = context.attribute<RecurrenceAttributes>();
  const auto values = [&](std::size_t i) { return context.inputs[i].as<const double>(); };
  return run(context, how.axis, how.reverse != 0,
             Recurrence{values(0), how.has_sum ? values(1) : nullptr,
                        how.has_weight ? values(context.inputs.size() - 1) : nullptr,
                        context.outputs[0].as<double>()});
}

}  // namespace ebb::cuda
