#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct Batch {
  Tensor input;
  Tensor target;
};

}  // namespace ebb
