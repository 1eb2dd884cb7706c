#pragma once
#include "ebb/core/kernels/linear.h"

namespace ebb::models {

// Whether it passes about half of what comes in: what is before it starts with He's deviation.
constexpr bool is_rectifier(Activation activation) noexcept {
  using enum Activation;
  return activation == relu || activation == gelu || activation == silu ||
         activation == leaky_relu || activation == elu;
}

}  // namespace ebb::models
