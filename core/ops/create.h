#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/ops/arguments.h"

namespace ebb {

// Tensors without inputs. While a graph traces the thread they are nodes, which store no values.
struct CreateOptions {
  DType dtype = DType::f32;
  Device device = Device::cpu();
};
struct ArangeOptions {
  double step = 1;
  DType dtype = DType::i64;
  Device device = Device::cpu();
};
struct EyeOptions {
  std::optional<std::int64_t> columns = {};  // as many as rows
  std::int64_t diagonal = 0;  // the ones have column - row = this; positive: above the main
  DType dtype = DType::f32;
  Device device = Device::cpu();
};

// A tensor filled with 0. As Tensor::zeros(). Throws ShapeError for an open shape.
Tensor zeros(const Shape& shape, const CreateOptions& options = {},
             CallSite site = CallSite::here());
// A tensor filled with `value`, converted to the dtype. Throws as zeros.
Tensor full(const Shape& shape, double value, const CreateOptions& options = {},
            CallSite site = CallSite::here());
// A tensor filled with 1. Throws as zeros.
Tensor ones(const Shape& shape, const CreateOptions& options = {},
            CallSite site = CallSite::here());
// A dtype may stand for the options, here and below.
Tensor zeros(const Shape& shape, std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return zeros(shape, CreateOptions{.dtype = dtype}, site);
}
Tensor full(const Shape& shape, double value, std::same_as<DType> auto dtype,
            CallSite site = CallSite::here()) {
  return full(shape, value, CreateOptions{.dtype = dtype}, site);
}
Tensor ones(const Shape& shape, std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return ones(shape, CreateOptions{.dtype = dtype}, site);
}

Tensor zeros(std::integral auto, auto...) = delete;  // in braces: zeros({2, 3})
Tensor ones(std::integral auto, auto...) = delete;   // in braces: ones({2, 3})

// The numbers start (0 in arange(end)), start + step and so on, before end. There are
// ceil((end - start) / step), computed in double and rounded once. i64 by default; not bool.
// Throws Error for a step that is 0 or not finite, ends that are not finite, and numbers that the
// dtype, if not floating, does not have (2^53 and beyond among them).
Tensor arange(double start, double end, const ArangeOptions& options = {},
              CallSite site = CallSite::here());
Tensor arange(double end, const ArangeOptions& options = {}, CallSite site = CallSite::here());
template <detail::PlainNumber Step, std::same_as<DType> Type = DType>
Tensor arange(double start, double end, Step step, Type dtype = DType::i64,
              CallSite site = CallSite::here()) {
  return arange(start, end, ArangeOptions{.step = static_cast<double>(step), .dtype = dtype}, site);
}
Tensor arange(double end, std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return arange(end, ArangeOptions{.dtype = dtype}, site);
}
Tensor arange(double start, double end, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return arange(start, end, ArangeOptions{.dtype = dtype}, site);
}

// `count` numbers at equal distances from start to end. A single one is start. Computed in double
// and rounded once; floating. Throws Error for other dtypes, a negative count and ends that are not
// finite.
Tensor linspace(double start, double end, std::int64_t count, const CreateOptions& options = {},
                CallSite site = CallSite::here());
Tensor linspace(double start, double end, std::int64_t count, std::same_as<DType> auto dtype,
                CallSite site = CallSite::here()) {
  return linspace(start, end, count, CreateOptions{.dtype = dtype}, site);
}

// A matrix [rows, columns] with 1 on a diagonal and 0 elsewhere. Any dtype. Throws ShapeError for a
// negative size.
Tensor eye(std::int64_t rows, const EyeOptions& options = {}, CallSite site = CallSite::here());
template <std::integral Columns, std::same_as<DType> Type = DType>
Tensor eye(std::int64_t rows, Columns columns, Type dtype = DType::f32,
           CallSite site = CallSite::here()) {
  return eye(rows, EyeOptions{.columns = static_cast<std::int64_t>(columns), .dtype = dtype}, site);
}
Tensor eye(std::int64_t rows, std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return eye(rows, EyeOptions{.dtype = dtype}, site);
}

// The lower triangles of matrices x [..., m, n], with 0 above, in place of NaN too. The gradient
// has the same zeros. The last diagonal that stays is where column - row is `diagonal`. Any dtype.
// Throws ShapeError for fewer than two axes.
Tensor tril(const Operand& x, std::int64_t diagonal = 0);
// The upper triangles of matrices x [..., m, n], with 0 below. Otherwise as tril.
Tensor triu(const Operand& x, std::int64_t diagonal = 0);

// The operators of Tensor::full() and zeros(), without inputs, and of Tensor::to(), whose input is
// on another device than its output.
extern const OpDef full_op, to_op;
// Without inputs as well.
extern const OpDef arange_op, linspace_op, eye_op;
extern const OpDef tril_op, triu_op;

}  // namespace ebb
