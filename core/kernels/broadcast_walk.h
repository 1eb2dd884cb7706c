#pragma once
#include <cstdint>

#include "ebb/core/base/shape.h"

namespace ebb {

// The walk through an output and two inputs that broadcast to it, in its simplest form: axes of
// size 1 dropped, neighbours along which both inputs advance alike merged.
class BroadcastWalk {
 public:
  BroadcastWalk(const Shape& out, const Shape& a, const Shape& b) noexcept {
    std::int64_t step_a = 1, step_b = 1;
    for (int back = 1; back <= out.rank(); ++back) {
      const std::int64_t n = out.dim(-back);
      const std::int64_t n_a = back <= a.rank() ? a.dim(-back) : 1,
                         n_b = back <= b.rank() ? b.dim(-back) : 1;
      const std::int64_t along_a = n_a == 1 ? 0 : step_a, along_b = n_b == 1 ? 0 : step_b;
      step_a *= n_a;
      step_b *= n_b;
      if (n == 1) continue;
      if (axes_ > 0 && along_a == a_[axes_ - 1] * size_[axes_ - 1] &&
          along_b == b_[axes_ - 1] * size_[axes_ - 1]) {
        size_[axes_ - 1] *= n;
        continue;
      }
      size_[axes_] = n;
      a_[axes_] = along_a;
      b_[axes_++] = along_b;
    }
    if (axes_ == 0) axes_ = 1;  // one element
    for (int axis = 1; axis < axes_; ++axis) rows_ *= size_[axis];
  }

  int axes() const noexcept { return axes_; }  // innermost first
  std::int64_t size(int axis) const noexcept { return size_[axis]; }
  std::int64_t step_a(int axis) const noexcept { return a_[axis]; }
  std::int64_t step_b(int axis) const noexcept { return b_[axis]; }

  // Rows are contiguous in the output; in an input they are contiguous or one element.
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t row_elements() const noexcept { return size_[0]; }
  bool one_a() const noexcept { return a_[0] == 0; }
  bool one_b() const noexcept { return b_[0] == 0; }
  void row(std::int64_t index, std::int64_t& a, std::int64_t& b) const noexcept {
    a = b = 0;
    for (int axis = 1; axis < axes_; ++axis) {
      const std::int64_t i = axis + 1 == axes_ ? index : index % size_[axis];
      a += i * a_[axis];
      b += i * b_[axis];
      index /= size_[axis];
    }
  }

 private:
  std::int64_t size_[kMaxRank] = {1, 1, 1, 1, 1, 1};
  std::int64_t a_[kMaxRank] = {}, b_[kMaxRank] = {};
  std::int64_t rows_ = 1;
  int axes_ = 0;
};

}  // namespace ebb
