#pragma once
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

// While one is alive, what the calling thread computes has no history, in both modes: eagerly
// nothing is recorded on the tape or kept for a gradient, and the nodes that a graph gets are
// constants to gradients.
//
//   NoGrad no_grad;
//   Tensor scores = model(x);
class NoGrad {
 public:
  NoGrad() noexcept : scope_(detail::without_history()) {}

 private:
  detail::TapeModeScope scope_;
};

}  // namespace ebb
