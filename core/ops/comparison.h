#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Comparisons element by element: bool tensors. Operands of one dtype, whichever it is, broadcast
// by NumPy's rules; i32, i64, u8 and bool beside each other are cast to i64. Either may be a plain
// number. Beside a floating tensor the number is rounded to its dtype, so that a tensor filled with
// 0.1 equals 0.1. Beside integers and bool it is compared as it is: no integer equals 2.5, and
// every u8 is greater than -1. (A number is a double, which has all integers up to 2^53.) NaN is
// unequal to everything, itself too, and neither less nor greater. Denormals of f32 and f64 count
// as zeros on the CPU. No gradient passes. Throw ShapeError for shapes that do not broadcast and
// for floating dtypes that differ or stand beside others.

// True where a equals b.
Tensor equal(const Operand& a, const Operand& b);
// True where a differs from b.
Tensor not_equal(const Operand& a, const Operand& b);
// True where a is less than b.
Tensor less(const Operand& a, const Operand& b);
// True where a is at most b.
Tensor less_equal(const Operand& a, const Operand& b);
// True where a is greater than b.
Tensor greater(const Operand& a, const Operand& b);
// True where a is at least b.
Tensor greater_equal(const Operand& a, const Operand& b);

// A tensor is no bool, so `if (a == b)` does not compile: all(a == b) tells whether all are equal.
inline Tensor operator==(const Operand& a, const Operand& b) { return equal(a, b); }
inline Tensor operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
inline Tensor operator<(const Operand& a, const Operand& b) { return less(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }

// Logic on bool tensors, which broadcast by NumPy's rules. && and || are not overloaded: C++
// programs rely on their short circuit, which an overload does not have. Throw ShapeError for other
// dtypes.

// True where a and b both are.
Tensor logical_and(const Operand& a, const Operand& b);
// True where a or b is, or both.
Tensor logical_or(const Operand& a, const Operand& b);
// True where exactly one of a and b is.
Tensor logical_xor(const Operand& a, const Operand& b);
// True where x is false.
Tensor logical_not(const Operand& x);

// Below comparisons in precedence: x > 0 & x < 1 is (x > 0) & (x < 1).
inline Tensor operator&(const Operand& a, const Operand& b) { return logical_and(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return logical_or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return logical_xor(a, b); }
inline Tensor operator!(const Operand& x) { return logical_not(x); }

// True where x is NaN; floating.
Tensor isnan(const Operand& x);
// True where x is infinite, of either sign; floating.
Tensor isinf(const Operand& x);
// True where x is neither infinite nor NaN; floating.
Tensor isfinite(const Operand& x);

extern const BinaryOpDef equal_op, not_equal_op, less_op, less_equal_op, greater_op,
    greater_equal_op;
extern const OpDef logical_and_op, logical_or_op, logical_xor_op, logical_not_op, isnan_op,
    isinf_op, isfinite_op;

}  // namespace ebb
