#pragma once
#include <functional>

#include "ebb/core/parameters/parameters.h"

namespace ebb::optim {

// Chooses the parameters that weight decay applies to, by name, shape or dtype; empty means all.
// Called in every step, before anything is written.
//
//   optim::AdamW({.weight_decay = 0.1, .decay_only = optim::is_matrix})
//   optim::AdamW({.decay_only = [](auto& p) { return !p.name.ends_with("bias"); }})
using DecayOnly = std::function<bool(const Parameters::Entry&)>;

// Whether a parameter has two axes or more: true for weights, false for biases and gains of
// normalisations.
bool is_matrix(const Parameters::Entry& parameter);

}  // namespace ebb::optim
