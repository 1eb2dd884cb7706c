// Exact sums of integers and of bool, in 64 bits, in any order.
#include <atomic>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Wraps around, as sums of i64 do.
using Total = std::uint64_t;

constexpr std::int64_t kColumns = 256;  // that one thread adds up side by side

template <class T>
Total add_run(const T* in, std::int64_t count) noexcept {
  Total total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += static_cast<Total>(in[i]);
  return total;
}

// Calls result(i, total) for each sum.
template <class T, class Result>
void add_up(const T* in, const MergedAxes& axes, const Result& result) {
  const std::int64_t terms = axes.outer_reduced * axes.inner;
  if (axes.inner_reduced && axes.groups == 0) {
    std::atomic<Total> total = 0;
    for_pieces(axes.inner, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      total.fetch_add(add_run(in + begin, end - begin), std::memory_order_relaxed);
    });
    result(std::int64_t{0}, total.load());
  } else if (axes.inner_reduced) {
    for_items(axes.outer_kept, rows_per_piece(terms), [&](std::int64_t i) {
      const T* row = in + axes.offset(i, false);
      Total total = 0;
      for (std::int64_t r = 0; r < axes.outer_reduced; ++r)
        total += add_run(row + axes.offset(r, true), axes.inner);
      result(i, total);
    });
  } else {
    const std::int64_t strips = divide_up(axes.inner, kColumns);
    const std::int64_t width = std::min(axes.inner, kColumns);
    for_items(axes.outer_kept * strips, rows_per_piece(axes.outer_reduced * width),
              [&](std::int64_t i) {
                const std::int64_t o = i / strips, first = i % strips * kColumns;
                const std::int64_t columns = std::min(kColumns, axes.inner - first);
                const T* matrix = in + axes.offset(o, false) + first;
                Total totals[kColumns] = {};
                for (std::int64_t r = 0; r < axes.outer_reduced; ++r) {
                  const T* row = matrix + axes.offset(r, true);
                  for (std::int64_t j = 0; j < columns; ++j)
                    totals[j] += static_cast<Total>(row[j]);
                }
                for (std::int64_t j = 0; j < columns; ++j)
                  result(o * axes.inner + first + j, totals[j]);
              });
  }
}

// out[i] = as(sum, number of its terms).
template <class Out, class As>
Status reduce(const KernelContext& context, const As& as) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t results = out.elements(), count = in.elements();
  Out* to = out.as<Out>();
  if (results == 0) return {};
  if (count == 0) {
    std::fill_n(to, results, as(Total{0}, Total{0}));
    return {};
  }
  const auto terms = static_cast<Total>(count / results);
  const MergedAxes axes(in.spec.shape, context.attribute<Reduction>().axes);
  return for_stored_integer(in.spec.dtype, [&](auto type) {
    add_up(in.as<const decltype(type)>(), axes,
           [&](std::int64_t i, Total total) { to[i] = as(total, terms); });
  });
}

}  // namespace

Status sum_integers(const KernelContext& context) {
  return reduce<std::int64_t>(context,
                              [](Total total, Total) { return static_cast<std::int64_t>(total); });
}

Status any(const KernelContext& context) {
  return reduce<bool>(context, [](Total total, Total) { return total != 0; });
}

Status all(const KernelContext& context) {
  return reduce<bool>(context, [](Total total, Total terms) { return total == terms; });
}

}  // namespace ebb::cpu
