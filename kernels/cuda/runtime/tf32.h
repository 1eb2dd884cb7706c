#pragma once
#include <atomic>

namespace ebb::cuda {

// Whether f32 products may be computed in TF32 now. Asked when a product is prepared.
bool is_tf32_allowed() noexcept;
// Sets the address of the switch. Called before anything is prepared.
void look_for_tf32_at(const std::atomic<bool>& place) noexcept;

}  // namespace ebb::cuda
