// Which attention cuDNN computes, for kernels and memory rules.
#pragma once
#include <algorithm>

#include "ebb/allocator/profile.h"
#include "ebb/core/kernels/attention.h"

namespace ebb::cuda {

// Whether cuDNN should compute y, if it has a plan: f16 and bf16 without a mask. It compiles each
// plan when it is chosen, which takes 0.4 to 1.5 s: too long for the few queries of a step of
// generation, whose keys become more with each.
inline bool suits_cudnn(const AttentionLayout& of, const AttentionAttributes& attributes,
                        DType dtype, const memory::Profile* profile) noexcept {
  constexpr std::int64_t kLeastQueries = 64, kMostWidth = 256,
                         kMostElements = (std::int64_t{1} << 31) - 1;
  const std::int64_t widest = std::max(of.depth, of.width);
  return profile != nullptr && profile->has_cudnn && profile->compute_capability >= 80 &&
         is_half(dtype) && attributes.mask == 0 && of.batch > 0 && of.length >= kLeastQueries &&
         of.keys > 0 && std::min(of.depth, of.width) > 0 && of.depth % 8 == 0 &&
         of.width % 8 == 0 && widest <= kMostWidth &&
         of.batch * std::max(of.length, of.keys) * widest <= kMostElements;
}

// Bytes of workspace that its plans use at most: 256 on GPUs of capability 9.0, else none. Asked of
// cuDNN 9.19 and 9.26 by tests/gpu_check/cudnn_workspaces.cpp.
inline constexpr std::size_t kAttentionWorkspace = 256;

}  // namespace ebb::cuda
