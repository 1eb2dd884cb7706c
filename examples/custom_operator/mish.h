// An activation function that ebb does not have. Who applies it needs no more than this.
#pragma once
#include "ebb/core/tensor/operand.h"

// x tanh(softplus(x)), element by element (Misra 2019, arXiv:1908.08681).
ebb::Tensor mish(const ebb::Operand& x);
