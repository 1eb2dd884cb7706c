#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb::detail {

// Copies the values of a concrete tensor on any device to memory of `runtime`, in the order of
// `stream`. Copies nothing to a simulated device.
void transfer(const Tensor& from, Runtime& runtime, Stream* stream, void* to);

}  // namespace ebb::detail
