#pragma once
#include <optional>

#include "ebb/optim/optimizer.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

struct LionOptions {
  LearningRate learning_rate = 1e-4;  // a third to a tenth of Adam's
  double beta1 = 0.9;                 // of the momentum in a step's direction, in [0, 1)
  double beta2 = 0.99;                // decay of the momentum, in [0, 1)
  double weight_decay = 0;            // times rate and parameter, taken from the parameter
  DecayOnly decay_only = {};          // parameters that decay; all if empty
  Clip clip = {};                     // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};                         // tells apart optimizers of one rule on one scope
  std::optional<DType> state_dtype = {};         // of the momentum; else as state_dtype_of()
};

// Lion (Chen et al., Symbolic discovery of optimization algorithms, NeurIPS 2023, algorithm 2):
//   p -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay p);  m = beta2 m + (1 - beta2) g
// with the old m and p on the right. One slot per parameter, half of what Adam keeps,
// "lion.momentum": f32 or f64, and f32 beside f16 and bf16.
using Lion = OptimizerOf<LionOptions>;

}  // namespace ebb::optim
