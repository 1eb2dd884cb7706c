// Matrix products as plain loops that a compiler vectorises.
#pragma once
#include <cstdint>
#include <type_traits>

#include "ebb/core/base/half.h"

namespace ebb::emulated {

// Element (row, column) lies at row * row_step + column * column_step.
template <class T>
struct MatrixView {
  T* data;
  std::int64_t row_step, column_step;
  T& operator()(std::int64_t row, std::int64_t column) const {
    return data[row * row_step + column * column_step];
  }
};

// Type in which elements are multiplied and summed.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// out[column * rows + row] = sum over `inner` of a(row, i) * b(i, column). `in_tf32` rounds the
// factors to TF32 first.
template <class T>
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, MatrixView<const T> a,
              MatrixView<const T> b, Sum<T>* out, bool in_tf32 = false);

}  // namespace ebb::emulated
