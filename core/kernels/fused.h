#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/reduce.h"

namespace ebb {

// A pointwise operator of a chain.
struct FusedStep {
  Kernel run = nullptr;    // reads and writes buffers of one shape, whatever their length
  const char* name = "";   // of the operator
  Attributes attributes;   // the operator's
  std::uint8_t count = 0;  // of operands
  // Numbers of values: first the inputs of the chain, then the results of its steps in order.
  std::array<std::uint8_t, 3> operands = {};
  DType dtype = DType::f32;  // of the result

  std::span<const std::uint8_t> read() const noexcept { return {operands.data(), count}; }
};

// Pointwise operators that are computed as one, of which each but the last gives its result to
// later ones alone. Results have the same number of elements.
struct FusedChain {
  std::vector<FusedStep> steps;
  // By input: the shape that it broadcasts to, in the step that reads it.
  std::vector<Shape> broadcast_to;
  // The last result, of this shape, is summed: over all of it, or over its last axes.
  std::optional<Reduction> sum;
  Shape summed;

  static constexpr std::size_t kMostValues = 20;  // inputs and steps
};

// Attributes of a kernel that runs a chain, which lives as long as its node.
struct FusedAttributes {
  const FusedChain* chain = nullptr;
};

namespace cpu {
// out = the result of the chain's last step. out may be an input of out's own shape and dtype.
Status fused(const KernelContext&);
}  // namespace cpu
namespace cuda {
KernelFunction fused;
MemoryFunction fused_memory;
PrepareFunction fused_prepare;  // compiles the chain
}  // namespace cuda
}  // namespace ebb
