// Memory sources for a CUDA device.
#pragma once

#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::cuda {

/// Makes the source of the current device's memory and sets the constants of `profile` for it.
/// EBB_CUDA_MEMORY chooses: `virtual`; `plain`, segments of cudaMalloc; or `block`, a cudaMalloc
/// for each block, so that compute-sanitizer sees where each one ends. The default is virtual if
/// the device offers it, otherwise plain. Returns null, and sets `problem` to one line, if the
/// choice is unknown or not available.
std::unique_ptr<MemorySource> make_device_source(int device, std::shared_ptr<LiveStreams> streams,
                                                 Profile& profile, std::string& problem);

/// Makes a source of page-locked host memory, which the device copies from and to on its own, in
/// these streams.
std::unique_ptr<MemorySource> make_pinned_source(int device, std::shared_ptr<LiveStreams> streams);

}  // namespace ebb::memory::cuda
