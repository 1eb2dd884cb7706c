#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/kernels/cpu/merged_walk.h"

namespace ebb::cpu {

// Folds count elements into one, in sequence: step(.. step(start, in[0]) .., in[count - 1]).
template <class T, class Total, class Step>
inline Total fold_run(const T* in, std::int64_t count, Total start, const Step& step) noexcept {
  for (std::int64_t i = 0; i < count; ++i) start = step(start, static_cast<Total>(in[i]));
  return start;
}

// Calls result(i, total) for each result of a reduction. Each row of neighbours is folded by
// itself; up to kColumns columns are folded side by side.
template <std::int64_t kColumns, class T, class Total, class Step, class Result>
inline void fold(const T* in, const MergedAxes& axes, Total start, const Step& step,
                 const Result& result) {
  const std::int64_t inner = axes.inner, reduced = axes.outer_reduced;
  for_results(
      axes, kColumns,
      [=, &axes](std::int64_t i, std::int64_t at) {
        Total total = start;
        for (std::int64_t r = 0; r < reduced; ++r)
          total = step(total, fold_run(in + at + axes.offset(r, true), inner, start, step));
        result(i, total);
      },
      [=, &axes](std::int64_t i, std::int64_t at, std::int64_t count) {
        Total totals[kColumns];
        std::fill_n(totals, count, start);
        for (std::int64_t r = 0; r < reduced; ++r) {
          const T* row = in + at + axes.offset(r, true);
          for (std::int64_t j = 0; j < count; ++j)
            totals[j] = step(totals[j], static_cast<Total>(row[j]));
        }
        for (std::int64_t j = 0; j < count; ++j) result(i + j, totals[j]);
      });
}

}  // namespace ebb::cpu
