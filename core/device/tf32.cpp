#include "ebb/core/device/tf32.h"

namespace ebb {

namespace {
constinit std::atomic<bool> allowed_now{false};
}

void allow_tf32(bool allowed) noexcept { allowed_now.store(allowed, std::memory_order_relaxed); }
bool is_tf32_allowed() noexcept { return allowed_now.load(std::memory_order_relaxed); }
const std::atomic<bool>& detail::tf32_switch() noexcept { return allowed_now; }

}  // namespace ebb
