// A convolution as cuDNN computes it, on device pointers.
#pragma once
#include <array>

#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

namespace ebb::emulated {

// x or y: images, channels, height, width. Weights: filters, channels of a group, height, width.
struct ConvTensor {
  std::int64_t id = 0, alignment = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<std::int64_t, 4> dims = {}, strides = {};

  std::size_t bytes() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < 4; ++i) last += (dims[i] - 1) * strides[i];
    return static_cast<std::size_t>(last + 1) * item_bytes(type);
  }
};

struct ConvOperation {
  enum Pass { forward, weight_gradient, input_gradient } pass = forward;
  double alpha = 1, beta = 0;
  std::array<std::int64_t, 2> before = {}, after = {}, stride = {}, dilation = {};
  ConvTensor weights, x, y;

  const ConvTensor& result() const {
    return pass == forward ? y : pass == input_gradient ? x : weights;
  }
};

// A way to compute it. Engines that a caller must not take give wrong numbers.
struct ConvEngine {
  std::int64_t number;
  unsigned notes;  // bits by cudnnBackendNumericalNote_t
  enum Needs { nothing, little, copies, copies_and_parts, four_copies } needs;
  bool is_refused = false;  // by its plan

  bool has(cudnnBackendNumericalNote_t note) const { return (notes >> note & 1) != 0; }
  std::int64_t workspace_bytes(const ConvOperation& of) const;
};

// Computes it, on addresses of the host.
void convolve(const ConvOperation& of, const ConvEngine& engine, void* weights, void* x, void* y);

}  // namespace ebb::emulated
