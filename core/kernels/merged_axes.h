#pragma once
#include <cstdint>

#include "ebb/core/base/shape.h"

namespace ebb {

// A reduction in its simplest form: axes of size 1 dropped, neighbours of one kind (reduced or
// kept) merged. Kinds then alternate. `inner` is the innermost group; the groups outside it are
// walked by index.
struct MergedAxes {
  std::int64_t inner = 1;  // the innermost group, contiguous
  bool inner_reduced = true;
  int groups = 0;  // outside of it, innermost first
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride[kMaxRank] = {};
  bool reduced[kMaxRank] = {};
  std::int64_t outer_kept = 1, outer_reduced = 1;

  MergedAxes(const Shape& shape, std::uint32_t axes) noexcept {
    std::int64_t step = 1;
    bool started = false;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t n = shape.dim(axis);
      const bool is_reduced = (axes >> axis & 1u) != 0;
      if (n == 1) continue;
      if (!started) {
        started = true;
        inner = n;
        inner_reduced = is_reduced;
      } else if (groups == 0 && is_reduced == inner_reduced) {
        inner *= n;
      } else if (groups > 0 && reduced[groups - 1] == is_reduced) {
        size[groups - 1] *= n;
      } else {
        size[groups] = n;
        stride[groups] = step;
        reduced[groups++] = is_reduced;
      }
      step *= n;
    }
    for (int g = 0; g < groups; ++g) (reduced[g] ? outer_reduced : outer_kept) *= size[g];
  }

  // Whether all elements are reduced to one.
  bool reduces_all() const noexcept { return inner_reduced && groups == 0; }
  // The offset of the index-th combination of the outer groups of one kind.
  std::int64_t offset(std::int64_t index, bool kind) const noexcept {
    std::int64_t at = 0;
    for (int g = 0; g < groups; ++g) {
      if (reduced[g] != kind) continue;
      if (g + 2 >= groups) return at + index * stride[g];  // the last of its kind: kinds alternate
      at += index % size[g] * stride[g];
      index /= size[g];
    }
    return at;
  }
};

// The axes that a reduction of `shape` to `to`, which broadcasts to it, reduces.
inline std::uint32_t axes_between(const Shape& shape, const Shape& to) noexcept {
  std::uint32_t axes = 0;
  const int missing = shape.rank() - to.rank();
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis < missing || (to.dim(axis - missing) == 1 && shape.dim(axis) != 1)) axes |= 1u << axis;
  return axes;
}

}  // namespace ebb
