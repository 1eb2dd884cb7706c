#pragma once
#include <span>

#include "ebb/allocator/profile.h"

namespace ebb::detail {

// A kind of GPU that can be simulated: the properties that its memory rules depend on.
struct GpuKind {
  const char* name;
  int compute_capability;
  int multiprocessors;
};

std::span<const GpuKind> gpu_kinds() noexcept;
memory::Profile profile_of(const GpuKind& kind);

}  // namespace ebb::detail
