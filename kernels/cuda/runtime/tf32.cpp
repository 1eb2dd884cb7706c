#include "ebb/kernels/cuda/runtime/tf32.h"

namespace ebb::cuda {

namespace {
constinit const std::atomic<bool>* place_of_switch = nullptr;
}

bool is_tf32_allowed() noexcept {
  return place_of_switch && place_of_switch->load(std::memory_order_relaxed);
}

void look_for_tf32_at(const std::atomic<bool>& place) noexcept { place_of_switch = &place; }

}  // namespace ebb::cuda
