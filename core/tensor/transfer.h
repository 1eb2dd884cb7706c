#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb::detail {

// Brings the values of a concrete tensor, of whatever device, to memory of a device, in the order
// of one of its streams. Nothing is copied to a simulated device.
void transfer(const Tensor& from, Runtime& runtime, Stream* stream, void* to);

}  // namespace ebb::detail
