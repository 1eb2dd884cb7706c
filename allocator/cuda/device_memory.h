// Which memory a device is used with.
#pragma once

#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::cuda {

/// A source of its memory, for which the profile gets its constants. The environment's
/// EBB_CUDA_MEMORY chooses: `virtual`; `plain`, segments of cudaMalloc; or `block`, a cudaMalloc
/// for each block, so that compute-sanitizer sees where each one ends. Otherwise it is virtual
/// where the device offers that, else plain. The device is current. Null, and `problem` in one
/// line, where what was chosen is not there.
std::unique_ptr<MemorySource> make_device_source(int device, std::shared_ptr<LiveStreams> streams,
                                                 Profile& profile, std::string& problem);

}  // namespace ebb::memory::cuda
