#pragma once
#include <atomic>

namespace ebb::cuda {

// Whether products of f32 may be computed in TF32 now: asked when one is prepared.
bool is_tf32_allowed() noexcept;
// Where that is said; before anything is prepared.
void look_for_tf32_at(const std::atomic<bool>& place) noexcept;

}  // namespace ebb::cuda
