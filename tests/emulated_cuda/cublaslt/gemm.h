// Products of matrices, by plain loops that a compiler makes fast enough.
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

// What elements are multiplied and summed in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// out[column * rows + row] = sum over `inner` of a(row, i) * b(i, column), whose factors are
// rounded to TF32 first where that is asked for.
template <class T>
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, MatrixView<const T> a,
              MatrixView<const T> b, Sum<T>* out, bool in_tf32 = false);

}  // namespace ebb::emulated
