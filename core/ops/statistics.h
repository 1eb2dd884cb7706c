#pragma once
#include "ebb/core/ops/reduce.h"

namespace ebb {

// Statistics of floating tensors over axes as in sum(). Sums are made in double, or in short runs
// of float. They throw ShapeError for an axis out of range or named twice.

struct VarianceOptions {
  Axes axes = {};      // none: all of them
  OneAxis axis = {};   // in place of `axes`
  bool keep = false;   // reduced axes stay, with size 1
  int correction = 0;  // 1: divided by n - 1, without bias for a sample (Bessel)
};

// The variance over axes: the mean of squared differences from the mean. In two passes on the CPU,
// in one on a GPU, by updates in double, some elements at a time (Chan, Golub and LeVeque,
// "Algorithms for computing the sample variance", 1983). NaN over no elements, and over one with a
// correction of 1. Throws Error for a correction other than 0 and 1.
Tensor variance(const Operand& x, const VarianceOptions& options = {});
// The standard deviation over axes, the square root of variance(). The gradient is 0 where the
// deviation is 0.
Tensor standard_deviation(const Operand& x, const VarianceOptions& options = {});
EBB_TAKES_AXES(variance, VarianceOptions)
EBB_TAKES_AXES(standard_deviation, VarianceOptions)

struct NormOptions {
  // norm(x, {1}) does not compile: p, as in PyTorch, or an axis, as in sum(x, {1})?
  struct ByName {
    explicit constexpr ByName() noexcept {}
    template <class T>
    requires std::is_arithmetic_v<T>
    constexpr ByName(T) noexcept {  // NOLINT
      static_assert(!std::is_same_v<T, T>,
                    "what is meant is said by its name: {.p = 1} or {.axis = 1}");
    }
  };
  [[no_unique_address]] ByName by_name = ByName();
  double p = 2;       // 1, 2, or infinity
  Axes axes = {};     // none: all of them
  OneAxis axis = {};  // in place of `axes`
  bool keep = false;  // reduced axes stay, with size 1
};

// The p-norm of x over axes: the sum of absolute values (p = 1), the root of the sum of squares
// (2), or the largest absolute value (infinity). The gradient is 0 at 0. It overflows where the
// squares do. Throws Error for another p, ShapeError for p = infinity over no elements.
Tensor norm(const Operand& x, const NormOptions& options = {});

// log(sum(exp(x))) over axes, without overflow. -infinity over no elements, and over elements that
// are all -infinity.
Tensor logsumexp(const Operand& x, const ReduceOptions& options = {});
EBB_TAKES_AXES(logsumexp, ReduceOptions)

// The product of elements over axes; 1 over none. Multiplied in double and rounded once. It
// overflows where the product of a part does; the parts depend on device and shape. Gradients of
// any order are right where elements are 0 too; they take two f64 tensors of x's shape meanwhile,
// and one more where the axes are not neighbours.
Tensor prod(const Operand& x, const ReduceOptions& options = {});
EBB_TAKES_AXES(prod, ReduceOptions)

extern const OpDef variance_op, standard_deviation_op, norm1_op, norm2_op, logsumexp_op, prod_op;

}  // namespace ebb
