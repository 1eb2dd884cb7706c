#pragma once
#include "ebb/core/tape_mode.h"

namespace ebb {

// While one is alive, what the calling thread computes eagerly is not recorded on the tape: results
// have no history and nothing is kept for a gradient.
//
//   NoGrad no_grad;
//   Tensor scores = model(x);
class NoGrad {
 public:
  NoGrad() noexcept : scope_({.records = false, .category = detail::tape_mode().category}) {}

 private:
  detail::TapeModeScope scope_;
};

}  // namespace ebb
