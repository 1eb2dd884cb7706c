#pragma once
#include <functional>

#include "ebb/core/parameters/parameters.h"

namespace ebb::optim {

// Which parameters a weight decay is for, by name, shape or dtype; all, where it is empty. Asked
// in every step, before anything is written.
//
//   optim::AdamW({.weight_decay = 0.1, .decay_only = optim::is_matrix})
//   optim::AdamW({.decay_only = [](auto& p) { return !p.name.ends_with("bias"); }})
using DecayOnly = std::function<bool(const Parameters::Entry&)>;

// Those of two axes or more: weights, but neither biases nor the gains of a normalisation.
bool is_matrix(const Parameters::Entry& parameter);

}  // namespace ebb::optim
