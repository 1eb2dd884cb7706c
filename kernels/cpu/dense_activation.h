#pragma once
#include <cstdint>

#include "ebb/core/kernels/linear.h"

namespace ebb::cpu {

// y[i] = activation(y[i] + bias[i]); a null bias counts as zeros.
template <class T>
void add_bias_and_activate(Activation activation, T* y, const T* bias, std::int64_t count) noexcept;

// out[i] = dy[i] activation'(..), the derivative from its result y. out may be dy or y. Over
// all threads.
template <class T>
void multiply_by_derivative(Activation activation, const T* y, const T* dy, T* out,
                            std::int64_t count);

}  // namespace ebb::cpu
