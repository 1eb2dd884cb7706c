// Runs a test's host kernels on a device whose memory is elsewhere.
#pragma once
#include <algorithm>

#include "ebb/core/kernels/device_kernel.h"

namespace ebb::tests {

// Runs a host kernel on copies of a CUDA kernel's inputs, and copies its outputs back. Waits for
// both copies. Workspace may be up to 1 MiB.
Status run_on_copies(Kernel kernel, const KernelContext& context) noexcept;

// run_on_copies() as the kernel of an operator: `.cpu = {run}, .cuda = tests::copied<run>`.
template <Kernel kernel, MemoryRule memory = nullptr, PrepareRule prepare = nullptr>
inline constexpr DeviceKernel copied{
    .run = [](const KernelContext& context) { return run_on_copies(kernel, context); },
    .memory = memory,
    .prepare = prepare,
    .can_be_captured = false};

// The kernel of an identity of f32, and one that fails.
inline constexpr auto copy_first = [](const KernelContext& c) -> Status {
  const float* const from = c.inputs[0].as<float>();
  std::copy(from, from + c.outputs[0].elements(), c.outputs[0].as<float>());
  return {};
};
inline constexpr auto always_fails = [](const KernelContext&) {
  return Status::fail("as it must");
};

}  // namespace ebb::tests
