// Cuts the gradient of a convolution's weights into segments, for the kernel and its memory rule.
#pragma once
#include <algorithm>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/conv.h"

namespace ebb::cuda {

inline constexpr std::int64_t kConvTile = 64;

// The sum over all positions of all images is cut into segments, summed apart, where the weights
// alone have too few tiles to fill a device.
struct ConvSegments {
  std::int64_t count = 1, length;

  explicit ConvSegments(const ConvLayout& of) noexcept : length(of.images * of.places()) {
    constexpr std::int64_t kBlocks = 256, kLeastLength = 512;
    const auto tiles_of = [](std::int64_t n) { return (n + kConvTile - 1) / kConvTile; };
    const std::int64_t tiles =
        std::max<std::int64_t>(1, of.groups * tiles_of(of.filters) * tiles_of(of.depth()));
    const std::int64_t most = std::max<std::int64_t>(1, length / kLeastLength);
    count = std::clamp<std::int64_t>(kBlocks / tiles, 1, most);
    length = (length + count - 1) / count;
  }
  // Bytes of the segments' sums, which are f64 for f64, else f32.
  std::size_t bytes(const ConvLayout& of, DType dtype) const noexcept {
    if (count == 1) return 0;
    return aligned_bytes(static_cast<std::size_t>(count * of.groups * of.filters * of.depth()) *
                         (dtype == DType::f64 ? 8 : 4));
  }
};

}  // namespace ebb::cuda
