#pragma once
#include "ebb/core/kernels/device_kernel.h"

namespace ebb::cpu {

// Whether a kernel reads only the shape of an input while the `unwanted` outputs are not computed:
// OpDef::is_shape_only, or is_input<i> where OpDef::shape_only is bit(i).
using IsShapeOnly = bool (*)(std::size_t input, const IndexSet& unwanted);
template <std::size_t kInput>
bool is_input(std::size_t input, const IndexSet&) {
  return input == kInput;
}

namespace detail {
Status run_in_float(const KernelContext& context, Kernel kernel, IsShapeOnly is_shape_only);
MemoryNeeds memory_in_float(const MemoryQuery& query, MemoryRule rule, IsShapeOnly is_shape_only);
}  // namespace detail

// A kernel of f32 and f64, for f16 and bf16 as well: `.cpu = cpu::in_float<cpu::matmul>`.
//
// Inputs of 16 bits are widened into workspace, the kernel runs there, and outputs are rounded from
// workspace. This takes four bytes for each element read or written, beside the kernel's own
// workspace; the reserve has its size for floats. Inputs are copied before and outputs after, so
// they may share memory. An input that may be destroyed is not. Not for a kernel that updates its
// inputs in place.
template <Kernel kKernel, MemoryRule kMemory = nullptr, IsShapeOnly kIsShapeOnly = nullptr>
inline constexpr DeviceKernel in_float = {
    .run = [](const KernelContext& c) { return detail::run_in_float(c, kKernel, kIsShapeOnly); },
    .memory =
        [](const MemoryQuery& q) { return detail::memory_in_float(q, kMemory, kIsShapeOnly); }};

}  // namespace ebb::cpu
