#pragma once
#include <atomic>

namespace ebb {

// Whether products of f32, those of LSTMs among them, may be computed in TF32 on a GPU of compute
// capability 8.0 and above: factors are rounded to 10 bits of mantissa, sums are f32. Off unless
// said. Holds for the process, from then on: plans that a session has made stay as they are.
void allow_tf32(bool allowed) noexcept;
bool is_tf32_allowed() noexcept;

namespace detail {
// Where kernels look it up.
const std::atomic<bool>& tf32_switch() noexcept;
}  // namespace detail

}  // namespace ebb
