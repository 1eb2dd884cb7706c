#include "ebb/core/device/gpu_kinds.h"

#include "ebb/allocator/cuda_profile.h"

namespace ebb::detail {

// From NVIDIA's data sheets; the SXM form if there are several.
std::span<const GpuKind> gpu_kinds() noexcept {
  static constexpr GpuKind kinds[] = {
      {"t4", 75, 40}, {"a100", 80, 108}, {"l4", 89, 58}, {"h100", 90, 132}, {"h200", 90, 132}};
  return kinds;
}

memory::Profile profile_of(const GpuKind& kind) {
  memory::Profile profile = memory::cuda_profile(kind.compute_capability, kind.multiprocessors);
  profile.name = kind.name;
  profile.has_cudnn = true;
  profile.has_cudnn_bf16 = kind.compute_capability >= 80;
  return profile;
}

}  // namespace ebb::detail
