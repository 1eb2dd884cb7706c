#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Arithmetic element by element, on f32 and f64. Operands of one dtype broadcast by NumPy's rules;
// a plain number takes the tensor's dtype and costs no memory. At least one operand is a tensor.
// Throw ShapeError for shapes that do not broadcast and for dtypes that differ.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);

// Functions element by element, of x's shape and dtype (f32, f64). Outside their domain sqrt and
// log give what IEEE 754 says: NaN, or -infinity for log(0). On the CPU exp and log are within 1.5
// ulp of the exact value everywhere (1.0 and 0.8 measured), tanh and sigmoid within 3 (2.5), where
// denormals count as zeros; dense's activations and lstm's gates are the same functions. Throw
// ShapeError for other dtypes.
Tensor square(const Operand& x);
Tensor sqrt(const Operand& x);
Tensor exp(const Operand& x);
Tensor log(const Operand& x);
Tensor tanh(const Operand& x);
Tensor sigmoid(const Operand& x);  // 1 / (1 + exp(-x))
Tensor relu(const Operand& x);     // max(x, 0); NaN stays NaN, the gradient at 0 is 0

// The gradient of y = relu(x) from its result: dy where y > 0, else 0. dy and y have one shape.
Tensor relu_gradient(const Operand& dy, const Operand& y);

extern const OpDef add_op, add_number_op;
extern const OpDef subtract_op, subtract_number_op, subtract_from_number_op;
extern const OpDef multiply_op, multiply_number_op;
extern const OpDef divide_op, divide_by_number_op, divide_number_op;
extern const OpDef negate_op, square_op, sqrt_op, exp_op, log_op, tanh_op, sigmoid_op, relu_op,
    relu_gradient_op;

}  // namespace ebb
