#pragma once
#include "ebb/core/kernels/linear.h"

namespace ebb::models {

// Whether the activation passes about half of its input. Weights before it then start with He's
// deviation.
constexpr bool is_rectifier(Activation activation) noexcept {
  using enum Activation;
  return activation == relu || activation == gelu || activation == silu ||
         activation == leaky_relu || activation == elu;
}

}  // namespace ebb::models
