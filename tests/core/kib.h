#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb::tests {

// Returns a tensor of `size` KiB.
inline Tensor kib(std::int64_t size, const Device& device) {
  return Tensor::zeros({size * 256}, DType::f32, device);
}

}  // namespace ebb::tests
