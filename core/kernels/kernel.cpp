#include "ebb/core/kernels/kernel.h"

#include "ebb/core/base/index_set.h"
#include "ebb/core/kernels/tf32.h"

namespace ebb {
namespace {

constinit std::atomic<bool> own_switch{false};
constinit const std::atomic<bool>* switch_of_tf32 = &own_switch;

}  // namespace

void allow_tf32(bool allowed) noexcept { own_switch.store(allowed, std::memory_order_relaxed); }
bool is_tf32_allowed() noexcept { return switch_of_tf32->load(std::memory_order_relaxed); }
const std::atomic<bool>& detail::tf32_switch() noexcept { return own_switch; }
void detail::look_for_tf32_at(const std::atomic<bool>& tf32_switch) noexcept {
  switch_of_tf32 = &tf32_switch;
}

std::int64_t detail::product(const Shape& shape, int begin, int end) noexcept {
  std::int64_t result = 1;
  bool is_open = false;
  for (int i = begin; i < end; ++i) {
    if (shape.dim(i) == 0) return 0;
    if (shape.dim(i) == kOpen)
      is_open = true;
    else
      result *= shape.dim(i);
  }
  return is_open ? kOpen : result;
}

bool KernelContext::destroys(std::size_t input) const noexcept {
  return destroyed && destroyed->has(input);
}

}  // namespace ebb
