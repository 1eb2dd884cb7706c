#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {
// Inputs sum*, g, rows (i64 scalar): sum += rows g, in the wider dtype of the two; nothing if rows
// is 0, where g may be NaN. Each is f32 or
// f64; g is f16 or bf16 where sum is f32.
Status accumulate(const KernelContext&);
}  // namespace ebb::cpu

// On a GPU: for one array and for many.
namespace ebb::cuda {
KernelFunction accumulate;
Status accumulate_merged(std::span<const Launch>);
}  // namespace ebb::cuda
