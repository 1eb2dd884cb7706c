#pragma once
#include "ebb/core/kernels/device_kernel.h"

// How a kernel of f32 and f64 takes f16 and bf16, whatever it computes: it hands itself on.
//
//   Status matmul(const KernelContext& context) {
//     if (is_half(context.outputs[0].spec.dtype)) return in_float(context, matmul);
//     ..
//   MemoryNeeds matmul_memory(const MemoryQuery& query) {
//     if (is_half(query.outputs[0].dtype)) return in_float_memory(query, matmul_memory);
//     ..
//
// Inputs of 16 bits are widened into workspace, the kernel runs on those, and outputs of 16 bits
// are rounded from workspace: that is four bytes for each element that is read or written, beside
// what the kernel takes itself, and the reserve has the size that it has for floats. Inputs are
// copied before and outputs after, so they may share memory, and an input that may be destroyed is
// not. Not for a kernel that updates its inputs in place.
namespace ebb::cpu {

// Whether a kernel reads the values of an input where nobody reads these outputs.
using ReadsInput = bool (*)(std::size_t input, const IndexSet& unwanted);

// `rule` is that of the kernel, or null; without `reads` it reads all inputs.
MemoryNeeds in_float_memory(const MemoryQuery& query, MemoryRule rule, ReadsInput reads = nullptr);
Status in_float(const KernelContext& context, Kernel kernel, ReadsInput reads = nullptr);

}  // namespace ebb::cpu
