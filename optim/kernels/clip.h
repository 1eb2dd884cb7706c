#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

struct ClipAttributes {
  double limit = 1;
  std::int64_t gated = 0;  // 1: inputs 1 and 2 are ready and count
};

// Numbers in the work memory: enough partial sums to keep a device busy.
inline constexpr std::int64_t kClipNumbers = 512;

}  // namespace ebb::optim

namespace ebb::cpu {
// Inputs work* (f64[kClipNumbers]), (ready (bool scalar), count (i64 scalar))?, any number of
// gradients of any floating dtype. A star marks what is written; there are no outputs. With `norm`
// the Euclidean norm of all gradients together, divided by count:
//   work[0] = norm <= limit ? 1 : limit / norm;  work[1] = norm;  0 behind them
// Unless ready, nothing happens. Squares and their sums are double; the order of addition depends
// on the shapes alone. A NaN norm makes the scale NaN, an infinite one 0.
Status clip_scale(const KernelContext&);
}  // namespace ebb::cpu

// On a GPU.
namespace ebb::cuda {
KernelFunction clip_scale;
}  // namespace ebb::cuda
