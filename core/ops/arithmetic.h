#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Arithmetic element by element, on floating dtypes, exact as IEEE 754 has it. Operands of one
// dtype broadcast by NumPy's rules; a plain number takes the tensor's dtype and costs no memory. At
// least one operand is a tensor. add, subtract, multiply and negate take i32, i64 and u8 too, and
// wrap around where a result is out of range; a number beside them must be one that the dtype has.
// multiply takes a mask beside any of these: bool times T is cast(bool, T) times T. Throw
// ShapeError for shapes that do not broadcast, dtypes that differ, and a number that the dtype does
// not have.
#define EBB_FAMILY "ebb/core/kernels/functors/arithmetic.inc"
#include "ebb/core/ops/declare_pointwise.inc"

// The sum of tensors, which broadcast; of one of them itself. Throws Error for none.
Tensor add(const ListOf<Tensor>& tensors, CallSite site = CallSite::here());

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return subtract(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return multiply(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return divide(a, b); }
inline Tensor operator-(const Operand& x) { return negate(x); }

// x = x + y and its kin: the handle x gets another tensor. Memory is never written to, and other
// handles keep the old one. So `p -= 0.1 * p.grad()` under NoGrad would not train: there these
// throw Error for a leaf that wants a gradient, and add_assign(p, -0.1 * p.grad()) changes it.
Tensor& operator+=(Tensor& x, const Operand& y);
Tensor& operator-=(Tensor& x, const Operand& y);
Tensor& operator*=(Tensor& x, const Operand& y);
Tensor& operator/=(Tensor& x, const Operand& y);

}  // namespace ebb
