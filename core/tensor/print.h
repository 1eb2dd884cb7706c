// What is printed beside tensors and shapes.
#pragma once
#include <iosfwd>

#include "ebb/core/base/half.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

// "f32", "f32[2, 3]", "cuda:1"; and numbers of 16 bits, as the floats that they are.
std::ostream& operator<<(std::ostream& out, DType type);
std::ostream& operator<<(std::ostream& out, const Spec& spec);
std::ostream& operator<<(std::ostream& out, const Device& device);
std::ostream& operator<<(std::ostream& out, Float16 value);
std::ostream& operator<<(std::ostream& out, BFloat16 value);

}  // namespace ebb
