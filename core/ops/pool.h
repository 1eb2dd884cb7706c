#pragma once
#include <concepts>

#include "ebb/core/ops/arguments.h"

namespace ebb {

struct MaxPool2dOptions {
  Size2d kernel = 2;
  Size2d stride = 0;   // 0: as the kernel
  Size2d padding = 0;  // on both sides, at most half of the kernel
};

// The largest element of each window of x [..., h, w]. Gives [..., oh, ow], of its floating dtype,
// with
//   oh = (h + 2 padding - kernel) / stride + 1, rounded down, ow likewise.
// Padding is never the largest; NaN is, as in NumPy. The gradient goes to the first of equal
// elements. It finds it again in x, which the operator before mostly keeps as well, so no indices
// are kept. Throws ShapeError.
Tensor max_pool2d(const Operand& x, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  Size2d kernel = 2;
  Size2d stride = 0;
  Size2d padding = 0;
  bool count_include_pad = true;  // whether padding counts, as zeros; PyTorch's default
};

// The mean of each window of x [..., h, w], shapes as in max_pool2d. For whole images use
// mean(x, {-2, -1}).
Tensor avg_pool2d(const Operand& x, const AvgPool2dOptions& options = {});

struct MaxPool1dOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 0;
  std::int64_t padding = 0;
};
struct AvgPool1dOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 0;
  std::int64_t padding = 0;
  bool count_include_pad = true;
};

// The largest element of each window along the last axis of x [..., length].
Tensor max_pool1d(const Operand& x, const MaxPool1dOptions& options = {});
// The mean of each window along the last axis of x [..., length].
Tensor avg_pool1d(const Operand& x, const AvgPool1dOptions& options = {});

// A kernel and a stride may stand for the options.
Tensor max_pool2d(const Operand& x, std::integral auto kernel, const Size2d& stride = 0) {
  return max_pool2d(x, MaxPool2dOptions{.kernel = kernel, .stride = stride});
}
Tensor avg_pool2d(const Operand& x, std::integral auto kernel, const Size2d& stride = 0) {
  return avg_pool2d(x, AvgPool2dOptions{.kernel = kernel, .stride = stride});
}
Tensor max_pool1d(const Operand& x, std::integral auto kernel, std::int64_t stride = 0) {
  return max_pool1d(
      x, MaxPool1dOptions{.kernel = static_cast<std::int64_t>(kernel), .stride = stride});
}
Tensor avg_pool1d(const Operand& x, std::integral auto kernel, std::int64_t stride = 0) {
  return avg_pool1d(
      x, AvgPool1dOptions{.kernel = static_cast<std::int64_t>(kernel), .stride = stride});
}

extern const OpDef max_pool_op, max_pool_select_op, max_pool_backward_op, avg_pool_op,
    avg_pool_backward_op;

}  // namespace ebb
