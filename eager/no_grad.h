#pragma once
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

// While one is alive, results of the calling thread have no history, in both modes. Eager records
// nothing on the tape and keeps nothing for a gradient; nodes added to a graph are constants to
// gradients.
//
//   NoGrad no_grad;
//   Tensor scores = model(x);
class NoGrad {
 public:
  NoGrad() noexcept : scope_(mode()) {}

 private:
  static detail::TapeMode mode() noexcept {
    detail::TapeMode mode = detail::without_history();
    mode.no_grad = true;
    return mode;
  }
  detail::TapeModeScope scope_;
};

}  // namespace ebb
