// An activation function that ebb does not have. Callers need only this header.
#pragma once
#include "ebb/core/tensor/operand.h"

// x tanh(softplus(x)), element by element (Misra 2019, arXiv:1908.08681).
ebb::Tensor mish(const ebb::Operand& x);
