#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "ebb/core/base/shape.h"

namespace ebb {

// The axes before the last two, of a batch of matrices; none for a vector.
inline Shape batch_axes(const Shape& shape) noexcept {
  const int axes = shape.rank() < 2 ? 0 : shape.rank() - 2;
  return Shape(shape.dims().first(static_cast<std::size_t>(axes)));
}

// A walk through an output and inputs that broadcast to it, in its simplest form: axes of size 1
// dropped, neighbours along which all inputs advance alike merged.
template <int kInputs>
class BroadcastWalk {
 public:
  template <std::same_as<Shape>... Inputs>
  explicit BroadcastWalk(const Shape& out, const Inputs&... inputs) noexcept {
    const Shape* const shapes[kInputs] = {&inputs...};
    std::int64_t step[kInputs], along[kInputs];
    for (std::int64_t& one : step) one = 1;
    for (int back = 1; back <= out.rank(); ++back) {
      const std::int64_t n = out.dim(-back);
      bool merges = axes_ > 0;
      for (int k = 0; k < kInputs; ++k) {
        const std::int64_t own = back <= shapes[k]->rank() ? shapes[k]->dim(-back) : 1;
        along[k] = own == 1 ? 0 : step[k];
        step[k] *= own;
        merges = merges && along[k] == step_[axes_ - 1][k] * size_[axes_ - 1];
      }
      if (n == 1) continue;
      if (merges) {
        size_[axes_ - 1] *= n;
        continue;
      }
      size_[axes_] = n;
      for (int k = 0; k < kInputs; ++k) step_[axes_][k] = along[k];
      ++axes_;
    }
    if (axes_ == 0) axes_ = 1;  // one element
    for (int axis = 1; axis < axes_; ++axis) rows_ *= size_[axis];
  }

  using Steps = std::int64_t[kInputs];

  int axes() const noexcept { return axes_; }  // innermost first
  std::int64_t size(int axis) const noexcept { return size_[axis]; }
  const Steps& steps(int axis) const noexcept { return step_[axis]; }

  // Rows are contiguous in the output; in an input they are contiguous or one element.
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t row_elements() const noexcept { return size_[0]; }
  bool one(int input) const noexcept { return step_[0][input] == 0; }
  // The offset of a row in each input.
  void row(std::int64_t index, Steps& at) const noexcept {
    for (std::int64_t& offset : at) offset = 0;
    for (int axis = 1; axis < axes_; ++axis) {
      const std::int64_t i = axis + 1 == axes_ ? index : index % size_[axis];
      for (int k = 0; k < kInputs; ++k) at[k] += i * step_[axis][k];
      index /= size_[axis];
    }
  }

 private:
  std::int64_t size_[kMaxRank] = {1, 1, 1, 1, 1, 1};
  std::int64_t step_[kMaxRank][kInputs] = {};
  std::int64_t rows_ = 1;
  int axes_ = 0;
};

template <std::same_as<Shape>... Inputs>
BroadcastWalk(const Shape&, const Inputs&...) -> BroadcastWalk<sizeof...(Inputs)>;

}  // namespace ebb
