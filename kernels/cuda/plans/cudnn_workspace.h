// Memory that cuDNN's calls and plans work in.
#pragma once
#include "ebb/core/kernels/carver.h"

namespace ebb::cuda {

inline constexpr std::size_t kCudnnAlignment = 256;

// Bytes to declare for plans that use up to `limit`.
inline std::size_t cudnn_workspace_bytes(std::size_t limit) noexcept {
  Carver carver(nullptr);
  carver.take_bytes(limit, kCudnnAlignment);
  return carver.bytes();
}
// The limit for plans in a workspace of so many bytes, or less than was declared.
inline std::size_t cudnn_limit_of(std::size_t workspace_bytes) noexcept {
  constexpr std::size_t kRoom = kCudnnAlignment - 64;
  return workspace_bytes > kRoom ? workspace_bytes - kRoom : 0;
}

}  // namespace ebb::cuda
