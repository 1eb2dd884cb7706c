// Assigns threads to rows and cuts sums into work for blocks of threads: functions of the shape
// alone, shared by kernels and their memory rules.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ebb/core/kernels/index.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/kernels/cuda/plans/sum_plan.h"

namespace ebb::cuda {

// Number of threads that share a row: a power of two up to a warp; 0: a whole block.
constexpr int threads_of_row(std::int64_t elements) noexcept {
  if (elements > 1024) return 0;
  int threads = 1;
  while (threads < 32 && threads * 4 < elements) threads *= 2;
  return threads;
}

// Number of rows that a block works on at a time, with `threads` threads each.
constexpr int rows_of_block(int threads) noexcept {
  return threads == 0 ? 1 : kRowThreads / threads;
}

// The mean of one number per row, for `rows` rows of `elements`: each block adds up its rows'
// numbers.
struct RowMeanPlan {
  int threads;          // of a row
  std::int64_t blocks;  // if more than one, a second kernel adds their sums

  constexpr RowMeanPlan(std::int64_t rows, std::int64_t elements) noexcept
      : threads(threads_of_row(elements)) {
    constexpr std::int64_t kAlone = 4, kMost = 1024;  // turns of a lone block; blocks
    const int at_once = rows_of_block(threads);
    const std::int64_t turns = (rows + at_once - 1) / at_once;
    blocks = turns <= kAlone ? 1 : std::min(turns, kMost);
  }
  constexpr std::size_t workspace_bytes() const noexcept {
    return blocks == 1 ? 0 : static_cast<std::size_t>(blocks) * sizeof(double);
  }
};

inline constexpr std::int64_t kMostParts = 1024;  // of a sum

// Cuts each sum into enough parts to fill any device, with at least `least` terms each. `blocks`:
// blocks that the uncut sums would occupy.
constexpr void cut(SumPlan& plan, std::int64_t blocks, std::int64_t least) noexcept {
  constexpr std::int64_t kGrain = 16;  // keeps the beginnings of parts aligned
  const std::int64_t terms = plan.terms, most = std::max<std::int64_t>(1, terms / least);
  std::int64_t parts =
      std::clamp<std::int64_t>(kMostParts / std::max<std::int64_t>(1, blocks), 1, most);
  plan.part = std::max<std::int64_t>(1, (terms + parts - 1) / parts);
  if (parts > 1) plan.part = (plan.part + kGrain - 1) / kGrain * kGrain;
  plan.parts = std::max<std::int64_t>(1, (terms + plan.part - 1) / plan.part);
}

// Sums along rows: neighbouring threads have neighbouring terms.
constexpr SumPlan plan_rows(std::int64_t results, std::int64_t terms) noexcept {
  SumPlan plan{.results = results,
               .terms = terms,
               .width = rows_of_block(threads_of_row(terms)),
               .by_rows = true,
               .part = terms};
  if (plan.width == 1) cut(plan, results, 16 * kRowThreads);
  return plan;
}

// Sums down the columns of `outer` matrices [terms, columns]: neighbouring threads have
// neighbouring columns.
constexpr SumPlan plan_columns(std::int64_t outer, std::int64_t terms,
                               std::int64_t columns) noexcept {
  SumPlan plan{.results = outer * columns, .terms = terms};
  while (plan.width < 32 && plan.width < columns) plan.width *= 2;
  cut(plan, outer * ((columns + plan.width - 1) / plan.width), 16 * (kRowThreads / plan.width));
  return plan;
}

inline SumPlan plan_sum(const MergedAxes& axes) noexcept {
  return axes.inner_reduced ? plan_rows(axes.outer_kept, axes.outer_reduced * axes.inner)
                            : plan_columns(axes.outer_kept, axes.outer_reduced, axes.inner);
}

// Running sums along an axis: a block for each part of a row, or a thread for each of a column.
inline SumPlan plan_scan(const IndexedAxis& axis) noexcept {
  SumPlan plan{.results = axis.outer * axis.inner, .terms = axis.size};
  plan.by_rows = axis.inner < 32 && axis.size > 32;
  cut(plan, plan.by_rows ? plan.results : plan.results / kRowThreads,
      plan.by_rows ? 16 * kRowThreads : 64);
  return plan;
}

// Workspace of fold_axes() in kernels/cuda/fold.h, for states of `state` bytes.
inline std::size_t fold_bytes(const Shape& shape, std::uint32_t axes, std::size_t state) noexcept {
  const SumPlan plan = plan_sum(MergedAxes(shape, axes));
  return plan.workspace_bytes() / sizeof(double) * state;
}

// State of a statistic over some elements. For a variance: mean, sum of squared differences from
// it, and number. For logsumexp: the largest element, and the sum of exponentials of the
// differences from it. For all others: a sum or product.
struct StatisticState {
  double center, sum, count;
};

// Workspace of column_sum() in kernels/cuda/epilogue.h.
constexpr std::size_t column_sum_bytes(std::int64_t rows, std::int64_t columns) noexcept {
  return plan_columns(1, rows, columns).workspace_bytes();
}

}  // namespace ebb::cuda
