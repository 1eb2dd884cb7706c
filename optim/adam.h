#pragma once
#include <optional>

#include "ebb/optim/optimizer.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

struct AdamOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;                            // decay of the first moment, in [0, 1)
  double beta2 = 0.999;                          // decay of the second moment, in [0, 1)
  double epsilon = 1e-8;                         // added to the root of the corrected second moment
  double weight_decay = 0;                       // times the parameter, added to the gradient
  DecayOnly decay_only = {};                     // parameters that decay; all if empty
  Clip clip = {};                                // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};                         // tells apart optimizers of one rule on one scope
  std::optional<DType> state_dtype = {};         // of the moments; else as state_dtype_of()
};

// Adam (Kingma & Ba, ICLR 2015), as PyTorch's torch.optim.Adam computes it:
//   g += weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// Two slots per parameter, "adam.first_moment" and "adam.second_moment". Computes in the wider
// dtype of parameter and moments. Moments are f32 or f64; beside f16 and bf16 parameters they are
// f32, and only the parameters are rounded.
using Adam = OptimizerOf<AdamOptions>;

struct AdamWOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  // times rate and parameter, taken from the parameter
  DecayOnly decay_only = {};   // parameters that decay, say is_matrix; all if empty
  Clip clip = {};              // of gradients
  std::optional<distributed::World> world = {};  // to average gradients over, weighted by rows
  std::string name = {};
  std::optional<DType> state_dtype = {};
};

// Adam with decoupled weight decay (Loshchilov & Hutter, ICLR 2019), as torch.optim.AdamW: the
// decay bypasses the moments, p -= rate weight_decay p. Slots "adamw.first_moment",
// "adamw.second_moment".
using AdamW = OptimizerOf<AdamWOptions>;

}  // namespace ebb::optim
