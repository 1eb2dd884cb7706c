#pragma once
#include <cstdint>

#include "ebb/core/kernels/kernel.h"

namespace ebb {

// A walk through an output whose elements lie in an input at other distances, in its simplest form.
// Axes of size 1 are dropped, and neighbours along which the input advances as one are merged.
// Bytes contiguous in both are one unit, moved as a whole. All numbers are in bytes.
class StridedWalk {
 public:
  // Elements of `element` bytes; the first is at `offset` in the input.
  explicit StridedWalk(std::size_t element, std::int64_t offset = 0) noexcept
      : unit_(static_cast<std::int64_t>(element)), offset_(offset) {}

  // Adds an axis of the output, innermost first, along which the input advances by `stride`: 0
  // where one element is repeated, negative where it is read from the end.
  void add(std::int64_t size, std::int64_t stride) noexcept {
    if (size == 1) return;
    if (axes_ == 0 && stride == unit_) {
      unit_ *= size;
    } else if (axes_ > 0 && stride == stride_[axes_ - 1] * size_[axes_ - 1]) {
      size_[axes_ - 1] *= size;
    } else {
      size_[axes_] = size;
      stride_[axes_++] = stride;
    }
  }

  std::int64_t unit() const noexcept { return unit_; }
  std::int64_t offset() const noexcept { return offset_; }
  int axes() const noexcept { return axes_; }  // innermost first
  std::int64_t size(int axis) const noexcept { return size_[axis]; }
  std::int64_t stride(int axis) const noexcept { return stride_[axis]; }
  // The number of combinations of the axes from `first` on.
  std::int64_t count(int first = 0) const noexcept {
    std::int64_t n = 1;
    for (int axis = first; axis < axes_; ++axis) n *= size_[axis];
    return n;
  }
  // The axis along which the input is contiguous and the output is not; with axis 0 it makes a
  // matrix to transpose. 0: there is none.
  int contiguous_axis() const noexcept {
    for (int axis = 1; axis < axes_; ++axis)
      if (stride_[axis] == unit_) return axis;
    return 0;
  }

 private:
  std::int64_t unit_, offset_;
  std::int64_t size_[kMaxRank] = {}, stride_[kMaxRank] = {};
  int axes_ = 0;
};

// The bytes of a part of a tensor that has all of its axes from `axis` on.
inline std::int64_t bytes_from(const Spec& spec, int axis) noexcept {
  return detail::product(spec.shape, axis, spec.shape.rank()) *
         static_cast<std::int64_t>(size_of(spec.dtype));
}

}  // namespace ebb
