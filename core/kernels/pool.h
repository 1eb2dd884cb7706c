#pragma once
#include "ebb/core/base/half.h"
#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Along the height, then along the width.
struct PoolAttributes {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t count_include_pad = 1;  // for means
};

// A range [begin, end) of windows or of pixels along a side.
struct PoolRange {
  std::int64_t begin, end;
};

// Planes of pixels, and of output positions, each with a window of pixels. No window is empty.
struct PoolLayout {
  std::int64_t planes = 1;
  std::int64_t size[2], places[2];
  PoolAttributes attributes;

  PoolLayout(const Shape& x, const Shape& y, const PoolAttributes& of) noexcept
      : size{x.dim(-2), x.dim(-1)}, places{y.dim(-2), y.dim(-1)}, attributes(of) {
    for (int axis = 0; axis + 2 < x.rank(); ++axis) planes *= x.dim(axis);
  }

  EBB_HOST_DEVICE std::int64_t pixels() const { return size[0] * size[1]; }
  EBB_HOST_DEVICE std::int64_t windows() const { return places[0] * places[1]; }

  // The pixels of an output position along a side, without padding.
  EBB_HOST_DEVICE PoolRange window(int side, std::int64_t place) const {
    const std::int64_t begin = place * attributes.stride[side] - attributes.padding[side];
    const std::int64_t end = begin + attributes.kernel[side];
    return {begin > 0 ? begin : 0, end < size[side] ? end : size[side]};
  }
  // Output positions along a side whose window covers the pixel.
  EBB_HOST_DEVICE PoolRange windows_of(int side, std::int64_t pixel) const {
    const std::int64_t last = pixel + attributes.padding[side];
    const std::int64_t before = last - attributes.kernel[side], stride = attributes.stride[side];
    const std::int64_t end = last / stride + 1;
    return {before < 0 ? 0 : before / stride + 1, end < places[side] ? end : places[side]};
  }
  // The number of elements under a mean.
  EBB_HOST_DEVICE std::int64_t count(std::int64_t i, std::int64_t j) const {
    if (attributes.count_include_pad != 0) return attributes.kernel[0] * attributes.kernel[1];
    const PoolRange rows = window(0, i), columns = window(1, j);
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }

  // The value to compare.
  EBB_HOST_DEVICE static float value_of(float x) { return x; }
  EBB_HOST_DEVICE static double value_of(double x) { return x; }
  EBB_HOST_DEVICE static float value_of(Float16 x) { return static_cast<float>(x); }
  EBB_HOST_DEVICE static float value_of(BFloat16 x) { return static_cast<float>(x); }

  // The position of a window's largest pixel in its plane: the first of equal ones. NaN is larger
  // than any number.
  template <class T>
  EBB_HOST_DEVICE std::int64_t largest(const T* plane, std::int64_t i, std::int64_t j) const {
    const PoolRange rows = window(0, i), columns = window(1, j);
    std::int64_t best = rows.begin * size[1] + columns.begin;
    auto most = value_of(plane[best]);
    for (std::int64_t y = rows.begin; y < rows.end; ++y)
      for (std::int64_t x = columns.begin; x < columns.end; ++x) {
        const auto value = value_of(plane[y * size[1] + x]);
        if (value > most || (value != value && most == most)) {
          most = value;
          best = y * size[1] + x;
        }
      }
    return best;
  }
};

namespace cpu {
// out = for each window input 0 at the position of the largest pixel of the last input. Floating,
// like the kernels below.
Status max_pool(const KernelContext&);
// out = zeros like x (input 1), dy (input 0) added at the positions of the largest pixels.
Status max_pool_backward(const KernelContext&);
// The mean of each window, whose padding counts as zeros or not at all.
Status avg_pool(const KernelContext&);
// out = for each pixel of x (input 1, no data), its share of the means times dy (input 0).
Status avg_pool_backward(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
