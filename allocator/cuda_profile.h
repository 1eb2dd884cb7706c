// Constants of CUDA devices, real and simulated alike.
#pragma once
#include "ebb/allocator/profile.h"

namespace ebb::memory {

/// The driver maps pages of 2 MiB (CUDA's minimum granularity on every GPU so far).
inline Profile cuda_profile(int compute_capability, int multiprocessors) {
  Profile profile;
  profile.name = "cuda";
  profile.kernels = Kernels::cuda;
  profile.page_bytes = std::size_t{2} << 20;
  profile.captures_programs = true;
  profile.compute_capability = compute_capability;
  profile.multiprocessors = multiprocessors;
  return profile;
}

}  // namespace ebb::memory
