// Kernels that tests write for the host, on a device whose memory is elsewhere.
#pragma once
#include "ebb/core/kernels/device_kernel.h"

namespace ebb::tests {

// Runs a host's kernel on copies of what a CUDA kernel is given, and brings back what it has
// written; waits for both. With workspace of up to 1 MiB.
Status run_on_copies(Kernel kernel, const KernelContext& context) noexcept;

// The same as the kernel of an operator: `.cpu = {run}, .cuda = tests::copied<run>`.
template <Kernel kernel, MemoryRule memory = nullptr, PrepareRule prepare = nullptr>
inline constexpr DeviceKernel copied{
    .run = [](const KernelContext& context) { return run_on_copies(kernel, context); },
    .memory = memory,
    .prepare = prepare,
    .can_be_captured = false};

}  // namespace ebb::tests
