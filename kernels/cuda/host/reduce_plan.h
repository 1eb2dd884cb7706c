// How sums are cut into work for blocks of threads: a function of the shape alone, which kernels
// and their memory rules share.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ebb/core/kernels/merged_axes.h"

namespace ebb::cuda {

inline constexpr int kSumThreads = 256;  // of a block

// Threads, a power of two up to a warp, that share a row of so many elements; 0: a whole block.
constexpr int threads_of_row(std::int64_t elements) noexcept {
  if (elements > 1024) return 0;
  int threads = 1;
  while (threads < 32 && threads * 4 < elements) threads *= 2;
  return threads;
}

// Rows, of so many threads each, that a block works on at a time.
constexpr int rows_of_block(int threads) noexcept {
  return threads == 0 ? 1 : kSumThreads / threads;
}

// `results` sums of `terms` each.
struct SumPlan {
  std::int64_t results = 1, terms = 1;
  int threads = 0;         // rows: of one sum, as threads_of_row; columns: side by side
  std::int64_t parts = 1;  // of each sum; a second kernel adds them up
  std::int64_t part = 1;   // terms of a part, the last may have fewer

  // What the parts are added up from.
  constexpr std::size_t workspace_bytes() const noexcept {
    return parts == 1 ? 0 : static_cast<std::size_t>(parts * results) * sizeof(double);
  }

  // Cuts sums that `blocks` blocks could work on into enough parts to fill any device, of no less
  // than `least` terms.
  constexpr void cut(std::int64_t blocks, std::int64_t least) noexcept {
    constexpr std::int64_t kBlocks = 1024, kGrain = 16;  // the beginnings of parts stay aligned
    const std::int64_t most = std::max<std::int64_t>(1, terms / least);
    parts = std::clamp<std::int64_t>(kBlocks / std::max<std::int64_t>(1, blocks), 1, most);
    part = std::max<std::int64_t>(1, (terms + parts - 1) / parts);
    if (parts > 1) part = (part + kGrain - 1) / kGrain * kGrain;
    parts = std::max<std::int64_t>(1, (terms + part - 1) / part);
  }
};

// Sums along rows: neighbouring threads have neighbouring terms.
constexpr SumPlan plan_rows(std::int64_t results, std::int64_t terms) noexcept {
  SumPlan plan{.results = results, .terms = terms, .threads = threads_of_row(terms), .part = terms};
  if (plan.threads == 0) plan.cut(results, 16 * kSumThreads);
  return plan;
}

// Sums down the columns of `outer` matrices [terms, columns]: neighbouring threads have
// neighbouring columns.
constexpr SumPlan plan_columns(std::int64_t outer, std::int64_t terms,
                               std::int64_t columns) noexcept {
  SumPlan plan{.results = outer * columns, .terms = terms, .threads = 1};
  while (plan.threads < 32 && plan.threads < columns) plan.threads *= 2;
  plan.cut(outer * ((columns + plan.threads - 1) / plan.threads),
           16 * (kSumThreads / plan.threads));
  return plan;
}

inline SumPlan plan_sum(const MergedAxes& axes) noexcept {
  return axes.inner_reduced ? plan_rows(axes.outer_kept, axes.outer_reduced * axes.inner)
                            : plan_columns(axes.outer_kept, axes.outer_reduced, axes.inner);
}

// For kernels/cuda/column_sum.h.
constexpr std::size_t column_sum_bytes(std::int64_t rows, std::int64_t columns) noexcept {
  return plan_columns(1, rows, columns).workspace_bytes();
}

// The mean of a number for each of `rows` rows of `elements`: each block adds up those of its rows.
struct RowMeanPlan {
  int threads;          // of a row
  std::int64_t blocks;  // one, or a second kernel adds up their sums

  constexpr RowMeanPlan(std::int64_t rows, std::int64_t elements) noexcept
      : threads(threads_of_row(elements)) {
    constexpr std::int64_t kAlone = 4, kMost = 1024;  // turns of a block by itself; blocks
    const int at_once = rows_of_block(threads);
    const std::int64_t turns = (rows + at_once - 1) / at_once;
    blocks = turns <= kAlone ? 1 : std::min(turns, kMost);
  }
  constexpr std::size_t workspace_bytes() const noexcept {
    return blocks == 1 ? 0 : static_cast<std::size_t>(blocks) * sizeof(double);
  }
};

}  // namespace ebb::cuda
