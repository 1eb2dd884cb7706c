#pragma once
#include <limits>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb {

// Index `index` (negative: from the end) along `axis`, which disappears and is not negative.
struct SelectAttributes {
  std::int64_t axis = 0;
  std::int64_t index = 0;
};

struct SizeAttributes {
  std::int64_t axis = 0;
};

// Indices begin, begin + step and so on along `axis`, before `end`. Negative bounds count from the
// end; kToTheEnd takes all the rest. The axis is not negative, the step not 0.
struct SliceAttributes {
  static constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

  std::int64_t begin = 0;
  std::int64_t end = kToTheEnd;
  std::int64_t axis = 0;
  std::int64_t step = 1;

  // The first index, and the end, along an axis of this size.
  constexpr std::int64_t first(std::int64_t size) const noexcept {
    return begin < 0 ? begin + size : begin;
  }
  constexpr std::int64_t last(std::int64_t size) const noexcept {
    if (end == kToTheEnd) return step > 0 ? size : -1;
    return end < 0 ? end + size : end;
  }
  // The number of indices between the two; 0 where they are the wrong way round.
  constexpr std::int64_t count(std::int64_t first, std::int64_t last) const noexcept {
    const std::int64_t distance = step > 0 ? last - first : first - last;
    const std::int64_t width = step > 0 ? step : -step;
    return distance <= 0 ? 0 : (distance - 1) / width + 1;
  }
};

// The walk through `count` indices along an axis, from `first` on, in their tensor.
inline StridedWalk part_of(const Spec& whole, int axis, std::int64_t first, std::int64_t count,
                           std::int64_t step = 1) noexcept {
  const auto element = static_cast<std::int64_t>(size_of(whole.dtype));
  const std::int64_t inner = bytes_from(whole, axis + 1);
  StridedWalk walk(size_of(whole.dtype), first * inner);
  walk.add(inner / element, element);
  walk.add(count, count > 1 ? step * inner : 0);
  walk.add(detail::product(whole.shape, 0, axis), inner * whole.shape.dim(axis));
  return walk;
}
inline StridedWalk part_of(const Spec& whole, const SelectAttributes& attributes) noexcept {
  const std::int64_t size = whole.shape.dim(static_cast<int>(attributes.axis));
  return part_of(whole, static_cast<int>(attributes.axis),
                 attributes.index < 0 ? attributes.index + size : attributes.index, 1);
}
inline StridedWalk part_of(const Spec& whole, const SliceAttributes& attributes) noexcept {
  const std::int64_t size = whole.shape.dim(static_cast<int>(attributes.axis)),
                     first = attributes.first(size);
  return part_of(whole, static_cast<int>(attributes.axis), first,
                 attributes.count(first, attributes.last(size)), attributes.step);
}

namespace cpu {
// out = in[..., index, ...]; any dtype.
Status select(const KernelContext&);
// out = zeros like input 1 (no data) with input 0 written at the index: the gradient of select.
Status select_backward(const KernelContext&);
// out = in at the indices of SliceAttributes; any dtype.
Status strided_slice(const KernelContext&);
// out = zeros like input 1 (no data) with input 0 at the indices of SliceAttributes: the gradient
// of slice, with steps or as a view; any dtype.
Status slice_backward(const KernelContext&);
// out, an i64 scalar, = the size of input 0 (no data) along SizeAttributes::axis.
Status size(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
