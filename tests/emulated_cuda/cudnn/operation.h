// Operations of cuDNN's backend interface as cuDNN computes them.
#pragma once
#include <array>
#include <span>
#include <variant>

#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

namespace ebb::emulated {

struct BackendTensor {
  std::int64_t id = 0, alignment = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<std::int64_t, 4> dims = {}, strides = {};
  bool is_virtual = false, is_by_value = false;

  std::size_t bytes() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < 4; ++i) last += (dims[i] - 1) * strides[i];
    return static_cast<std::size_t>(last + 1) * item_bytes(type);
  }
};

// x or y: images, channels, height, width. Weights: filters, channels of a group, height, width.
struct ConvOperation {
  enum Pass { forward, weight_gradient, input_gradient } pass = forward;
  double alpha = 1, beta = 0;
  std::array<std::int64_t, 2> before = {}, after = {}, stride = {}, dilation = {};
  BackendTensor weights, x, y;

  const BackendTensor& result() const {
    return pass == forward ? y : pass == input_gradient ? x : weights;
  }
};

// q, k, v, y: batch, heads, rows, width. By value: the scale, and what scores outside the band are.
struct AttentionOperation {
  std::array<BackendTensor, 7> operands;  // q, k, v, y, lse, scale, outside; empty ones lack an id
  bool causal = false, keeps_lse = false;
};

struct BackendOperation : std::variant<std::monostate, ConvOperation, AttentionOperation> {
  using variant::variant;
  std::vector<BackendTensor> operands() const;
};

// A way to compute it. Engines that a caller must not take give wrong numbers.
struct BackendEngine {
  std::int64_t number;
  unsigned notes;  // bits by cudnnBackendNumericalNote_t
  enum Needs { nothing, page, little, copies, copies_and_parts, four_copies } needs;
  bool is_refused = false;  // by its plan

  bool has(cudnnBackendNumericalNote_t note) const { return (notes >> note & 1) != 0; }
  std::int64_t workspace_bytes(const BackendOperation& of) const;
};

// Computes it, on addresses of the host, in the order of operands().
void compute(const BackendOperation& of, const BackendEngine& engine, std::span<void* const> at);

}  // namespace ebb::emulated
