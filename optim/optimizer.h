#pragma once
#include <memory>

#include "ebb/core/parameters.h"
#include "ebb/optim/learning_rate.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

// Makes steps: an update rule with a learning rate. Holds options only: moments and the count of
// steps are slots in Parameters, on the device, made at the first step. Sgd, Adam and AdamW are
// optimizers with their rules.
//
// A step allocates everything before it writes a byte: when it throws, parameters, slots and counts
// are what they were, and what it allocated is free.
class Optimizer {
 public:
  Optimizer(std::shared_ptr<const Rule> rule, LearningRate learning_rate);

  // Differentiates `loss` (one element) with respect to all parameters and updates those it depends
  // on. Leaves .grad() alone. Eager: the step is made now and the loss's tape freed; returns the
  // loss without history. In a graph: returns the loss as a node that takes the updates along, so
  // that a run that fetches it makes the step. Throws Error where the loss depends on no parameter,
  // or where one of the two belongs to a graph that the other does not; OutOfMemory.
  Tensor minimize(const Tensor& loss, const Parameters& parameters, EBB_CALL_SITE) const;

  // Eager: updates every parameter that has a .grad(), which stays. Throws Error where none has,
  // and for a graph's parameters (use minimize); OutOfMemory.
  void step(const Parameters& parameters, EBB_CALL_SITE) const;

  const Rule& rule() const noexcept { return *rule_; }
  const LearningRate& learning_rate() const noexcept { return learning_rate_; }

 private:
  std::shared_ptr<const Rule> rule_;
  LearningRate learning_rate_;
};

}  // namespace ebb::optim
