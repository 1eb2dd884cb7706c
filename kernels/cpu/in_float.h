#pragma once
#include "ebb/core/kernels/device_kernel.h"

// Runs a kernel of f32 and f64 on f16 and bf16: the kernel passes itself on.
//
//   Status matmul(const KernelContext& context) {
//     if (is_half(context.outputs[0].spec.dtype)) return in_float(context, matmul);
//     ..
//   MemoryNeeds matmul_memory(const MemoryQuery& query) { return in_float_memory(query, nullptr); }
//
// Inputs of 16 bits are widened into workspace, the kernel runs there, and outputs are rounded from
// workspace. This takes four bytes for each element read or written, beside the kernel's own
// workspace; the reserve has its size for floats. Inputs are copied before and outputs after, so
// they may share memory. An input that may be destroyed is not. Not for a kernel that updates its
// inputs in place.
namespace ebb::cpu {

// Whether a kernel reads the values of an input when the `unwanted` outputs are not computed.
using ReadsInput = bool (*)(std::size_t input, const IndexSet& unwanted);

// For kernels that know the other inputs, or that input, by their shape alone.
template <std::size_t kInput>
bool reads_only(std::size_t input, const IndexSet&) {
  return input == kInput;
}
template <std::size_t kInput>
bool reads_all_but(std::size_t input, const IndexSet&) {
  return input != kInput;
}

// `rule` is the kernel's memory rule, which in_float_memory() asks for other dtypes too, or null
// for none. Without `reads` the kernel reads all inputs.
MemoryNeeds in_float_memory(const MemoryQuery& query, MemoryRule rule, ReadsInput reads = nullptr);
Status in_float(const KernelContext& context, Kernel kernel, ReadsInput reads = nullptr);

}  // namespace ebb::cpu
