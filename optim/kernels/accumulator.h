#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {
// Inputs sum*, g, rows (i64 scalar): sum += rows g, in the wider dtype of the two, f32 or f64 each.
Status accumulate(const KernelContext&);
}  // namespace ebb::cpu
