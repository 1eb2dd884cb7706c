#pragma once
#include <optional>

#include "ebb/optim/detail/update_operator.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

struct FusedInput {
  Tensor parameter;
  Tensor gradient;  // of the parameter's shape; its dtype or f32 or f64
  std::span<const Tensor> slots;
  Tensor step;       // i64[]: steps made, this one included
  Tensor rate;       // f64[]
  const Gate& gate;  // nothing happens unless it is open; divides the gradient
};

// A rule whose update is one operator that works in place and allocates nothing, so that a step
// needs no memory for new values.
class FusedRule : public Rule {
 public:
  // Slots have the dtype of `state`, or where that is not given the one of state_dtype_of().
  explicit FusedRule(std::optional<DType> state) noexcept : state_(state) {}
  DType slot_dtype(std::size_t, DType parameter) const noexcept final {
    return state_.value_or(state_dtype_of(parameter));
  }
  // Updates the parameter and its slots. Returns the parameter in its new version.
  virtual Tensor update_in_place(const FusedInput& input) const = 0;
  // The same on copies, for rules that are made of this one.
  RuleResult update(const RuleInput& input) const final;

 private:
  const std::optional<DType> state_;
};

}  // namespace ebb::optim
