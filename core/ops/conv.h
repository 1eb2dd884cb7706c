#pragma once
#include "ebb/core/ops/size2d.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // zeros on both sides
  Size2d dilation = 1;
  std::int64_t groups = 1;
};

// The cross-correlation of images x [n, in, h, w] with weights [out, in / groups, kh, kw], a bias
// [out] added; y [n, out, oh, ow], of their dtype, floating, with
//   y[n, o, i, j] = bias[o] + sum over c, a, b of
//                   x[n, c, i stride - padding + a dilation, j ..] weights[o, c, a, b],
//   oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1, rounded down, ow likewise.
// The channels of group g, of which c counts, meet the filters of group g alone. Names and layout
// are PyTorch's. Throws ShapeError, for a kernel beyond the padded image too.
Tensor conv2d(const Operand& x, const Operand& weights, const Operand& bias,
              const Conv2dOptions& options = {});
// The same without a bias.
Tensor conv2d(const Operand& x, const Operand& weights, const Conv2dOptions& options = {});

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

// conv2d of height 1: x [n, in, length], weights [out, in / groups, k]; y [n, out, places].
Tensor conv1d(const Operand& x, const Operand& weights, const Operand& bias,
              const Conv1dOptions& options = {});
Tensor conv1d(const Operand& x, const Operand& weights, const Conv1dOptions& options = {});

// The gradients of conv2d are each other's: all of its derivatives are of these three.
extern const OpDef conv2d_op, conv2d_input_gradient_op, conv2d_weight_gradient_op;

}  // namespace ebb
