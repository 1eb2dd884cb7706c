// Checks and choices that all layers share.
#pragma once
#include <cstdint>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::models {

// Throws Error "[lstm] hidden = 0 is below 1 (file:line)", and for a size that no tensor can have,
// with the line of the CallSiteScope it is called in.
inline void require_size(const char* model, const char* what, std::int64_t size,
                         std::int64_t least = 1) {
  if (size < least)
    ebb::detail::refuse(model, std::string(what) + " = " + std::to_string(size) + " is below " +
                                   std::to_string(least));
  if (size > kMaxElements)
    ebb::detail::refuse(model, std::string(what) + " = " + std::to_string(size) +
                                   " is more than a tensor can have");
}

// The call in the layer that a weight was declared in, for operators that do not read the weight.
inline CallSite in_layer_of(const Tensor& weight, CallSite site) noexcept {
  const unsigned layer = weight.defined() ? ebb::detail::layer_of(*weight.impl()) : 0;
  return layer ? site.in(layer) : site;
}

// Whether the activation passes about half of its input. Weights before it then start with He's
// deviation.
constexpr bool is_rectifier(Activation activation) noexcept {
  using enum Activation;
  return activation == relu || activation == gelu || activation == gelu_tanh ||
         activation == silu || activation == leaky_relu || activation == elu;
}

}  // namespace ebb::models
