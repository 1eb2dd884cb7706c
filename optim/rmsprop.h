#pragma once
#include <optional>

#include "ebb/optim/optimizer.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

struct RmspropOptions {
  LearningRate learning_rate = 1e-2;
  double decay = 0.99;    // of the means, in [0, 1)
  double epsilon = 1e-8;  // added to the root
  double momentum = 0;    // in [0, 1)
  bool centered =
      false;  // divides by the standard deviation, not by the root of the mean of squares
  double weight_decay = 0;                       // times the parameter, added to the gradient
  DecayOnly decay_only = {};                     // parameters that decay; all if empty
  Clip clip = {};                                // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};                         // tells apart optimizers of one rule on one scope
  std::optional<DType> state_dtype = {};         // of the slots; else as state_dtype_of()
};

// RMSprop (Tieleman & Hinton, 2012; centered Graves, 2013), as torch.optim.RMSprop computes it:
//   g += weight_decay p;  v = decay v + (1 - decay) g^2;  a = decay a + (1 - decay) g
//   u = g / (sqrt(v - a^2) + epsilon);  b = momentum b + u;  p -= rate b
// If not centered, a is 0; without momentum, b is u. Slots per parameter, as far as they are used:
// "rmsprop.square_mean" (v), "rmsprop.mean" (a), "rmsprop.velocity" (b), f32 or f64, and f32 beside
// f16 and bf16. Where rounding makes v - a^2 negative, which is NaN in PyTorch, it is taken as 0.
using Rmsprop = OptimizerOf<RmspropOptions>;

}  // namespace ebb::optim
