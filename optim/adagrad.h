#pragma once
#include <optional>

#include "ebb/optim/optimizer.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

struct AdagradOptions {
  LearningRate learning_rate = 1e-2;
  double rate_decay = 0;      // the rate of step t is divided by 1 + (t - 1) rate_decay
  double initial_sum = 0;     // of squares, before the first step
  double epsilon = 1e-10;     // added to the root
  double weight_decay = 0;    // times the parameter, added to the gradient
  DecayOnly decay_only = {};  // parameters that decay; all if empty
  Clip clip = {};             // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};                         // tells apart optimizers of one rule on one scope
  std::optional<DType> state_dtype = {};         // of the sums; else as state_dtype_of()
};

// Adagrad (Duchi, Hazan & Singer, JMLR 2011), as torch.optim.Adagrad computes it:
//   g += weight_decay p;  s += g^2
//   p -= rate / (1 + (t - 1) rate_decay) g / (sqrt(initial_sum + s) + epsilon)
// One slot per parameter, "adagrad.square_sum" (s, without initial_sum): f32 or f64, and f32 beside
// f16 and bf16.
using Adagrad = OptimizerOf<AdagradOptions>;

}  // namespace ebb::optim
