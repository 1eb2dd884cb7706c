#pragma once
#include "ebb/core/kernels/device_kernel.h"

// Runs a kernel of f32 and f64 on f16 and bf16: the kernel passes itself on.
//
//   Status matmul(const KernelContext& context) {
//     if (is_half(context.outputs[0].spec.dtype)) return in_float(context, matmul);
//     ..
//   MemoryNeeds matmul_memory(const MemoryQuery& query) {
//     if (is_half(query.outputs[0].dtype)) return in_float_memory(query, matmul_memory);
//     ..
//
// Inputs of 16 bits are widened into workspace, the kernel runs there, and outputs are rounded from
// workspace. This takes four bytes for each element read or written, beside the kernel's own
// workspace; the reserve has its size for floats. Inputs are copied before and outputs after, so
// they may share memory. An input that may be destroyed is not. Not for a kernel that updates its
// inputs in place.
namespace ebb::cpu {

// Whether a kernel reads the values of an input when the `unwanted` outputs are not computed.
using ReadsInput = bool (*)(std::size_t input, const IndexSet& unwanted);

// `rule` is the kernel's memory rule, or null; without `reads` the kernel reads all inputs.
MemoryNeeds in_float_memory(const MemoryQuery& query, MemoryRule rule, ReadsInput reads = nullptr);
Status in_float(const KernelContext& context, Kernel kernel, ReadsInput reads = nullptr);

}  // namespace ebb::cpu
