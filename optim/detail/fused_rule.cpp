#include "ebb/optim/detail/fused_rule.h"

#include "ebb/core/ops/copy.h"

namespace ebb::optim {

RuleResult FusedRule::update(const RuleInput& input) const {
  Tensors slots;
  for (const Tensor& slot : input.slots) slots.push_back(copy(slot));
  const Gate always;
  Tensor parameter =
      update_in_place({.parameter = copy(input.parameter),
                       .gradient = input.gradient,
                       .slots = {slots.data(), slots.size()},
                       .step = cast(input.step, DType::i64),
                       .rate = cast(input.rate, DType::f64),
                       .gate = always,
                       .decays = decays({std::string(input.name), input.parameter})});
  return {std::move(parameter), std::move(slots)};
}

bool is_matrix(const Parameters::Entry& parameter) { return parameter.tensor.rank() > 1; }

}  // namespace ebb::optim
