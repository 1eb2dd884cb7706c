#pragma once
#include <optional>

#include "ebb/optim/optimizer.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

struct SgdOptions {
  LearningRate learning_rate = 1e-2;
  double momentum = 0;                           // in [0, 1)
  bool nesterov = false;                         // needs momentum
  double weight_decay = 0;                       // times the parameter, added to the gradient
  DecayOnly decay_only = {};                     // parameters that decay; all if empty
  Clip clip = {};                                // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};                         // tells apart optimizers of one rule on one scope
  std::optional<DType> state_dtype = {};         // of the velocity; else as state_dtype_of()
};

// Stochastic gradient descent, as PyTorch's torch.optim.SGD computes it (dampening 0):
//   g += weight_decay p;  v = momentum v + g;  p -= rate (nesterov ? g + momentum v : v)
// One slot per parameter, "sgd.velocity", where there is momentum: f32 or f64, and f32 beside f16
// and bf16.
using Sgd = OptimizerOf<SgdOptions>;

}  // namespace ebb::optim
