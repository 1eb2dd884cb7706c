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
  // Measured on an H100 by `gpu-check` (benchmarks/results), by multiprocessor, of 132: products of
  // f32, copies, and a launch in a captured program; and copies from page-locked memory.
  profile.products_per_us = std::int64_t{195'000} * std::max(multiprocessors, 1);
  profile.bytes_per_us = std::int64_t{22'600} * std::max(multiprocessors, 1);
  profile.step_ns = 1'050;
  profile.link_bytes_per_us = 51'000;
  return profile;
}

}  // namespace ebb::memory
