#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // zeros on both sides
  Size2d dilation = 1;
  std::int64_t groups = 1;
};

// The cross-correlation of images x [n, in, h, w] with weights [out, in / groups, kh, kw], plus a
// bias [out]. Gives y [n, out, oh, ow], of their floating dtype, with
//   y[n, o, i, j] = bias[o] + sum over c, a, b of
//                   x[n, c, i stride - padding + a dilation, j ..] weights[o, c, a, b],
//   oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1, rounded down, ow likewise.
// The filters of group g read the channels of group g alone, numbered by c. Names and layout are
// PyTorch's. Throws ShapeError, also for a kernel larger than the padded image.
Tensor conv2d(const Operand& x, const Operand& weights, const Operand& bias,
              const Conv2dOptions& options = {});
// Without a bias.
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

struct ConvTranspose2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;         // taken off y on both sides
  Size2d output_padding = 0;  // more of y, below and on the right
  Size2d dilation = 1;
  std::int64_t groups = 1;
};

// The transpose of conv2d, which takes its y back to the size of its x, as its gradient does.
// Images x [n, in, h, w], weights [in, out / groups, kh, kw] and a bias [out] give y [n, out, oh,
// ow], of their floating dtype. Each element of x adds the filters of its channel, times itself, to
// y:
//   y[n, o, i stride - padding + a dilation, j ..] = bias[o] + sum over c, i, a, j, b of
//                                                    x[n, c, i, j] weights[c, o, a, b],
//   oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1, ow likewise.
// The channels of group g reach the outputs of group g alone. Names and layout are PyTorch's.
// output_padding must lie below the stride or the dilation; from the stride on, x is padded first.
// Throws ShapeError, also for images without a pixel and a padding that leaves nothing of y.
Tensor conv_transpose2d(const Operand& x, const Operand& weights, const Operand& bias,
                        const ConvTranspose2dOptions& options = {});
Tensor conv_transpose2d(const Operand& x, const Operand& weights,
                        const ConvTranspose2dOptions& options = {});

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

// conv_transpose2d of height 1: x [n, in, length], weights [in, out / groups, k]; y [n, out,
// places].
Tensor conv_transpose1d(const Operand& x, const Operand& weights, const Operand& bias,
                        const ConvTranspose1dOptions& options = {});
Tensor conv_transpose1d(const Operand& x, const Operand& weights,
                        const ConvTranspose1dOptions& options = {});

// All derivatives are among the first three: conv2d's gradients are each other's gradients, and two
// of them are the gradients of its transpose.
extern const OpDef conv2d_op, conv2d_input_gradient_op, conv2d_weight_gradient_op,
    conv_transpose2d_op;

}  // namespace ebb
