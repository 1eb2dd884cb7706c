#pragma once
#include <span>

#include "ebb/core/ops/update.h"
#include "ebb/core/tensor.h"

namespace ebb::optim {

// One parameter in one step, as an update rule sees it.
struct RuleInput {
  Tensor parameter;
  Tensor gradient;                // of the parameter's shape and dtype
  std::span<const Tensor> slots;  // in the order of Rule::slots()
  Tensor step;                    // i64[]: steps made, this one included
  Tensor rate;                    // f64[]
  const detail::Gate& gate;       // nothing happens unless it is open
  CallSite site;
};

// What tells one optimizer from another: the state it keeps beside each parameter, and the operator
// that updates a parameter in place. Written once for both modes; an optimizer of one's own derives
// from this and is passed to Optimizer. Holds options only.
class Rule {
 public:
  virtual ~Rule() = default;
  // Begins the names of its slots: "adam" gives "hidden.weight/adam.first_moment" and "adam/step".
  virtual const char* name() const noexcept = 0;
  // The slots beside each parameter, of its shape and dtype, zero before the first step.
  virtual std::span<const char* const> slots() const noexcept = 0;
  // Updates the parameter and its slots in place, and allocates nothing: the optimizer has all
  // memory of a step before the first of these. Returns the parameter in its new version.
  virtual Tensor update(const RuleInput& input) const = 0;
};

}  // namespace ebb::optim
