#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Along the height, then along the width.
struct ConvAttributes {
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t groups = 1;
  std::int64_t bias = 0;                    // whether there is an input 2, the bias
  std::int64_t output_padding[2] = {0, 0};  // of conv_transpose2d
};

// The sizes of y [images, filters, out_height, out_width] = x [images, channels, height, width] *
// weights [filters, channels / groups, kernel_height, kernel_width].
struct ConvLayout {
  std::int64_t images, groups;
  std::int64_t channels, filters;  // of a group
  std::int64_t height, width, out_height, out_width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t stride[2], padding[2], dilation[2];

  ConvLayout(const Shape& x, const Shape& weights, const Shape& y,
             const ConvAttributes& attributes) noexcept
      : images(x.dim(0)),
        groups(attributes.groups),
        channels(weights.dim(1)),
        filters(weights.dim(0) / attributes.groups),
        height(x.dim(2)),
        width(x.dim(3)),
        out_height(y.dim(2)),
        out_width(y.dim(3)),
        kernel_height(weights.dim(2)),
        kernel_width(weights.dim(3)) {
    for (int side = 0; side < 2; ++side) {
      stride[side] = attributes.stride[side];
      padding[side] = attributes.padding[side];
      dilation[side] = attributes.dilation[side];
    }
  }

  // Elements of a plane of x, of a plane of y, of a kernel, and read at an output position.
  constexpr std::int64_t pixels() const noexcept { return height * width; }
  constexpr std::int64_t places() const noexcept { return out_height * out_width; }
  constexpr std::int64_t taps() const noexcept { return kernel_height * kernel_width; }
  constexpr std::int64_t depth() const noexcept { return channels * taps(); }
  // Whether sums and products of these sizes fit their types, whatever the images are.
  bool is_usual() const noexcept {
    constexpr std::int64_t kMost = 4096;
    for (int side = 0; side < 2; ++side)
      if (stride[side] > kMost || padding[side] > kMost || dilation[side] > kMost) return false;
    return kernel_height <= kMost && kernel_width <= kMost;
  }
  // Whether each output position reads one pixel, at the same place.
  bool is_pointwise() const noexcept {
    return taps() == 1 && stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
};

// The operators' inputs in this order. A gradient is of its last input, of which only the shape
// counts.
//   conv2d: x, weights, bias (optional)
//   conv2d_input_gradient: dy, weights, x
//   conv2d_weight_gradient: x, dy, weights
// conv_transpose2d takes x, weights and a bias (optional). It is the input gradient of the
// convolution whose result is its x, plus the bias; one kernel computes both. Floating.
//
// The CPU multiplies a tile of output positions at a time, whose pixels it copies into workspace
// first (im2col): for at most 16 threads, 64 Ki elements or 16 positions each. The gradient of the
// weights is also summed there in up to 8 parts of their size, however many images there are.
// oneDNN's kernels, which serve most convolutions of f32, take a copy of the weights, and in each
// of at most 8 threads one of an image of up to 512 Ki elements, or of several of 96 Ki in all,
// with channels rounded up to a vector. f16 and bf16 take float copies of their operands as well. A
// GPU needs workspace for cuDNN alone (kernels/cuda/plans/conv_plan.h).
namespace cpu {
KernelFunction conv2d, conv2d_weight_gradient;
KernelFunction conv_transpose2d;
MemoryFunction conv2d_memory, conv2d_weight_gradient_memory, conv_transpose2d_memory;
}  // namespace cpu
}  // namespace ebb
