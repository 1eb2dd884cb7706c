#pragma once
#include <atomic>

namespace ebb {

// Allows TF32 for products and convolutions of f32, also inside LSTMs, on GPUs of compute
// capability 8.0 and above: factors are rounded to 10 bits of mantissa, sums are f32. Off by
// default. Holds for the whole process from then on; existing plans of sessions stay as they are.
void allow_tf32(bool allowed) noexcept;
bool is_tf32_allowed() noexcept;

namespace detail {
// The switch, and where is_tf32_allowed() looks for it: a CUDA part's looks at ebb's.
const std::atomic<bool>& tf32_switch() noexcept;
void look_for_tf32_at(const std::atomic<bool>& tf32_switch) noexcept;
}  // namespace detail

}  // namespace ebb
