// Constants of CUDA devices, real and simulated alike.
#pragma once
#include <algorithm>
#include <cstdint>

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
  // An H100's data sheet, by multiprocessor: 60 Tflop/s of f32 and 3 TB/s, of 132.
  profile.products_per_us = std::int64_t{220'000} * std::max(multiprocessors, 1);
  profile.bytes_per_us = std::int64_t{22'000} * std::max(multiprocessors, 1);
  profile.step_ns = 2'000;
  return profile;
}

}  // namespace ebb::memory
