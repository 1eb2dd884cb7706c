#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb::tests {

inline Tensor number(double value) { return Tensor::full({}, value, DType::f64); }

}  // namespace ebb::tests
