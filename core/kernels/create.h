#pragma once
#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The parameters of numbers at equal distances, and the shape and dtype of the result.
struct SequenceAttributes {
  double start = 0, step = 1;
  double last = 0;  // of linspace, the exact last number
  std::int64_t has_last = 0;
  std::int64_t count = 0;
  std::int64_t dtype = 0;
};

struct EyeAttributes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t diagonal = 0;  // column - row of the ones
  std::int64_t dtype = 0;
};

struct TriangularAttributes {
  std::int64_t diagonal = 0;
  std::int64_t upper = 0;  // keeps column - row >= diagonal; 0: <=
};

// The diagonal clamped to where matrices of this shape have elements, or next to that: adding row
// numbers to it cannot overflow.
constexpr std::int64_t near_diagonal(std::int64_t diagonal, std::int64_t rows,
                                     std::int64_t columns) noexcept {
  return std::clamp(diagonal, -rows - 1, columns + 1);
}

namespace cpu {
// out[i] = start + i step, fused in double and converted once, except for a given last number.
// Every dtype. No inputs.
Status sequence(const KernelContext&);
// out[i, j] = j - i == diagonal; every dtype. No inputs.
Status eye(const KernelContext&);
// out = in [.., rows, columns] on the kept side of the diagonal, else 0; any dtype. out may be in.
Status triangular(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
